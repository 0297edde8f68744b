"""Messages and model answers of the tests of memos."""

KEY = "The brass key lies under the third stone of the old lamp room, and only Kai knows of it."
WHISTLE = "The silver whistle hangs behind the seventh door of the harbour house, and only Mira knows of it."

MEMO = "【Highlight 1】: (keepsake) Kai gave Mira lamp number 1."
