"""Reads the name that somebody gives, such as "My name is Mira." Pure.

A name must be written like a name and end its clause, and it must not be a word that is used in place of a name, such
as "Nobody". After "Call me", titles, words for relatives and adjectives are no names: "Call me Daddy."
German is read only after "Ich heiße" and "Mein Name ist". After "Nenn mich", every noun looks like a name.
Chinese and Japanese have no capitals. After 我叫, which also means "I ordered" and "I told", a name must begin with a
surname or have a form such as 小明. Japanese words that people say about a name, such as 秘密, are no names.
"""

import re
from typing import NamedTuple

from app.consolidation.fact_values import takes_back
from app.summarising.sentences import find_terms


class SaidName(NamedTuple):
    """A name that somebody gives.

    Attributes:
        value: The name.
        is_firm: Whether the words say that it is the name ("My name is"), and not only what to say ("Call me").

    """

    value: str
    is_firm: bool


LEAD = (
    r"(?:\(?(?:hi|hello|hey|well|yes|no(?=[,!.])|hallo|hola|bonjour|salut|also|so|by the way|btw|please|actually|and"
    r"|but|oh|ah|ok|okay|um|uh|sorry|careful|listen|look|remember|no,? thanks|no,? thank you|fyi"
    r"|just so you know|ooc)\b[,!.: ]{1,3}){0,3}"
)
"""Words with which a sentence can begin before it states a fact."""

CAPITAL_WORD = r"(?:[A-ZÀ-ÖØ-ÞĀ-ŽА-ЯЁ][\w'’-]{0,30})"
_NAME = rf"(?P<value>{CAPITAL_WORD}(?: {CAPITAL_WORD}){{0,2}})"
_STOP = r"(?=[.!,;…\"”»]|$| (?:and|but|und|aber|y|et|-|–|—|:\))(?:\s|$))"


_ENGLISH = frozenset(
    find_terms("""
    a all an and another any anybody anyone anything at back classified confidential crazy each everybody everyone
    everything forbidden he her hers here him his how i if important in irrelevant it its just lame later legion lost
    maybe me meaningless mine missing mr mrs ms mud my mystery nameless never no nobody none noone not nothing null of
    old on one or our ours personal private prof dr st redacted same secret secrets she so somebody someone something
    sorry taken tba tbd that the their them there these they this those tomorrow top undefined unimportant unknown
    unpronounceable unspoken us we what whatever when where which who whoever whom whose why wrong yes you your yours
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december
    """)
)
"""Words that stand in place of a name, or begin something else."""

_GERMAN = frozenset(
    find_terms("""
    der die das dein deine dich dir doktor dr du egal ein eine er es euch frau geheim geheimnis geheimsache hase herr
    ich ihm ihn ihnen ihr irgendwas irgendwer jemand kein keine keiner legion mein mich mir nebensache nicht nichts
    niemand prof programm privat privatsache schall sie unbekannt unwichtig verboten vergessen warum was wem wen wer
    weshalb wie willkommen wir wo
    """)
)
_SPANISH = frozenset(
    find_terms("""
    algo alguien anónima anónimo cómo como cuál cual desconocida desconocido don doña dr el él ella ellas ellos importa
    la legión misterio mi nada nadie ninguna ninguno no nosotras nosotros nunca privado que qué quien quién secreta
    secreto señor señora sr sra tu tú un una usted ustedes vosotras vosotros yo
    """)
)
_FRENCH = frozenset(
    find_terms("""
    anonyme comment devine docteur dr elle elles eux il ils inconnu inconnue jamais je la le légion lui m madame
    demain lundi mardi mercredi jeudi vendredi samedi dimanche
    mademoiselle mme moi mon monsieur mystère nous on pas personne pourquoi privé quand que quelquun qui quoi rien
    secret secrète soi toi ton tu un une vous où
    """)
)
_CALLS = frozenset(
    find_terms("""
    alpha amateur angel ass asshole asap aunt auntie aunty babe baby bae bastard bear beast beautiful beauty beloved
    big bitch blind blue bold bonkers bored boring boss bossy boy brave bro brother bruh buddy busy captain careless
    champ chef chief child chum clever clumsy coach cold colonel commander comrade cool count countess coward cozy
    creep creepy cringe cruel cub cuckoo curious cute cutie cynic cynical dad dada daddy damned danger dangerous
    dark darling dead dear dearest deluded demon desperate detective devil dirty doc doctor doll dork dramatic dude
    duke dumb dummy duchess early easy emperor empress enemy evil ex excited extra fam fat father fool foolish free
    friend funny gal gay general genius gentle gentleman ghost girl goat god goddess good goof goofy gorgeous governor
    gramps grandfather grandma grandmother grandpa granny great greedy green grumpy guilty gullible guy handsome happy
    harsh hero highness homie hon honey hopeful hopeless horny hot hotshot human hungry husband idiot ignorant ill
    impatient inspector insane intern jaded jealous jerk judge judgy kid kiddo killer kind king kitten kitty knight
    lad lady lame late lazy legend liar lieutenant little lonely lord loser love lovely lover lucky ma mad madam
    madame madman maestro major majesty mama mamma man marshal master mate maam mean mentor mile mister mistress mom
    momma mommy monster moron mother mum mummy mysterious naive naughty needy nerd nerdy nervous new nice ninja nosy
    nuts nutty odd offended officer okay ok ominous optimist optimistic pa pal papa paranoid pathetic patient peasant
    perfect pessimist pessimistic pet petty picky pig pilot poor pops predictable pregnant president pretty prince
    princess prof professor proud prude pumpkin puppy queen quick ready real realist rebel rich right romantic rude sad
    sarge savage scared sempai senior senpai sensei sergeant sensitive sentimental sexist sexy shallow sheriff shy sick
    silly simple single sir sire sis sister skeptic skeptical sceptic sceptical skipper slave slow slut small smart
    smooth snob softie softy soldier son soon sorry spoiled spoilt squire stranger strange strict stubborn stud stupid
    sugar sunshine superstitious surprised suspicious sweet sweetheart sweetie teach teacher terrible thief thirsty
    tired tomorrow tonight today tough toy traitor trash treasure trouble tsundere ugly uncle uber unlucky vain vanilla
    villain warrior weak weird weirdo whore wicked wife wild wise witch wizard wonderful woman worthless wrong young
    again anytime cab instead old-fashioned old-school oldschool taxi abuela abuelo ambassador baron baroness bishop
    cowboy earl emir hyung imam kaiser mami mayor minister nanny noona oma onee-chan onii-chan opa oppa overlord papi
    pastor pirate pope rabbi reverend sailor saint senator senor senorita sheikh sultan tsar unnie viscount
    """)
)
"""What people are called, or are called in jest, that is not their name. Without capitals in most of their uses."""

_FRENCH_CALLS = frozenset(
    find_terms("""
    amour bébé bête capitaine chef chérie chéri dieu docteur fou folle frère grand idiot idiote ma maestro maître
    maîtresse maman mon oncle papa patron patronne petit petite père mère professeur reine roi seigneur sœur stupide
    tante tata tonton votre
    """)
)
_ADJECTIVE = re.compile(r"\w{2,}(?:ful|less|ous|ible|ness)")

_FORMS = tuple(
    (re.compile(rf"(?i:{LEAD}{said}) {_NAME}{_STOP}"), no_names, is_firm)
    for said, no_names, is_firm in (
        (r"my name(?: is|['’]s)", _ENGLISH, True),
        (
            r"(?:you (?:can|may) |just |please |everyone |everybody |my friends |friends |people )?calls? me",
            _ENGLISH | _CALLS,
            False,
        ),
        (r"i(?: am|['’]m) called", _ENGLISH | _CALLS, False),
        (r"mein name ist", _GERMAN, True),
        (r"ich heiße", _GERMAN, True),
        (r"(?:yo )?me llamo", _SPANISH, True),
        (r"mi nombre es", _SPANISH, True),
        (r"(?:moi,? )?je m['’]appelle", _FRENCH, True),
        (r"mon nom est", _FRENCH, True),
        (r"appelle[- ]moi", _FRENCH | _FRENCH_CALLS, False),
    )
)

_REASON = re.compile(r"[,;:]?\s*(?:for|or|oder|denn|porque|pues|car)\b", re.I)
"""After a name, a reason or an alternative: `My name is Legion, for we are many.`"""
_BUT = re.compile(r"[,;]?\s*(?:but|though|although|however|mais)\b", re.I)
"""After "Call me" and a word, the word is a judgement: `Call me Stupid, but I love it.`"""
_DISLIKE = re.compile(
    r"\b(?:hate|loathe|detest|dislike|don['’]t like|can['’]t stand) (?:it|this|that)(?: name)?[^\w]*$", re.I
)
"""After "Call me" and a name, what the speaker thinks of it: `My friends call me Bob, I hate that name.`"""
_IN_FULL = re.compile(rf"[.,…!]*\s*[-–—]?\s*(?P<value>{CAPITAL_WORD}(?: {CAPITAL_WORD}){{1,2}})(?=[.!…\"”»]|$)")

_SURNAMES = (
    "王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林高罗羅郑鄭梁谢謝宋唐许許韩韓冯馮邓鄧曹彭曾肖萧蕭田董潘袁蔡蒋蔣"
    "余于杜叶葉程苏蘇魏吕呂丁任卢盧姚沈钟鍾鐘姜崔谭譚陆陸汪范石廖贾賈韦韋付傅方邹鄒熊孟秦邱江尹薛闫閻段雷侯龙龍史陶贺賀"
    "顾顧毛郝龚龔邵万萬钱錢严嚴戴莫孔向汤湯温溫康施文牛樊葛邢安齐齊易乔喬伍庞龐颜顏倪庄莊聂聶章鲁魯岳翟殷詹申欧歐耿关關兰蘭"
    "焦俞左柳甘祝包宁寧尚符舒阮柯纪紀梅童凌毕畢单裴霍涂成苗谷盛曲翁冉骆駱蓝藍路游辛靳管柴蒙鲍鮑华華喻祁蒲房滕屈饶饒解牟艾"
    "尤阳陽时時穆农農司卓古吉缪繆简簡车車项項连連芦蘆麦麥褚娄婁窦竇戚岑景党宫宮费費卜冷晏席卫衛米柏宗瞿桂全佟应應臧闵閔苟邬鄔"
    "边邊卞姬师師和仇栾欒隋商刁沙荣榮巫寇桑郎甄丛叢仲虞敖巩鞏明佘池查麻苑迟遲邝鄺"
)
_GIVEN_AWAY = (
    "了的着著过過吗嗎呢吧啊呀嘛不没沒别別来來去到你我他她它您们們谁誰什么麼怎这這那哪就都也还還再又很太给給让讓把被和跟帮幫"
    "说說做吃喝走跑看听聽买買卖賣送拿开開关闭閉停快慢等后後上下出进進回起醒取人总總局爸妈媽爷爺奶哥姐弟妹叔姨舅婶嬸娘爹"
    "外单單车車餐饭飯面麵鸡雞鸭鴨鱼魚肉虾蝦蟹饼餅粥汤湯酒茶菜奶咖啡粉肠腸串锅鍋糕糖果水药藥店号號个個辆輛份杯只隻"
    "老师師医醫警救命声聲叫喊笑哭骂罵"
)
"""Characters of verbs, particles, food and relatives. They are in names, too, but a name with them is not certain."""
_ORDINARY = re.compile(
    "秘密|机密|保密|什么|无名|無名|佚名|匿名|未知|不详|先生|女士|小姐|太太|经理|經理|主任|师傅|師傅|老板|老闆|司机|司機|大夫"
    "|护士|護士|教练|教練|安静|安靜|高兴|高興|万岁|萬歲|马上|馬上|方便|温柔|何必|何时|何時|于是|曾经|曾經|全部|时候|時候|路人"
    "|明天|天天|常常|谢谢|謝謝|包子|小心|小时|小時|小孩|小鬼|小狗|小猫|小貓|小贩|小販|小二|小工|小偷|小伙|小费|小費|阿姨|英文"
    "|中文|日文|假名|真名|艺名|藝名|名字|王八|白痴|笨蛋|向前|成功|连忙|連忙|解散|和平|文明|文件|方案|安全|明白|简单|簡單|应该"
    "|應該|单数|古代|同志|同学|同學"
)
"""Common words that have the form of a name."""
_TRANSCRIBED = re.compile(
    "[阿埃艾安奥奧巴贝貝比彼波伯布查达達戴丹德蒂迪多厄恩尔爾法菲费費芬弗夫盖蓋戈格古哈海汉漢赫亨霍基吉加杰傑卡凯凱科克库庫拉莱萊兰蘭朗劳勞"
    "雷里丽麗莉利琳林卢盧鲁魯露罗羅洛玛瑪迈邁麦麥曼梅米蜜密摩莫穆娜纳納奈妮尼诺諾帕佩皮珀普奇切琪乔喬琼瓊萨薩塞瑟莎沙森斯丝絲苏蘇索塔泰特"
    "汤湯提托瓦维維威韦韋温溫沃乌烏伍西希夏谢謝辛雅亚亞扬揚耶伊因尤约約泽澤珍芝佐]{2,6}"
)
"""A foreign name."""
_CHINESE = re.compile(
    r"(?P<said>我叫|我的名字(?:是|叫))(?P<value>[\u3400-\u9fff]{2,6}|[A-Z][a-z]+(?: [A-Z][a-z]+)?"
    r"|[\u3400-\u9fff]{1,6}·[\u3400-\u9fff]{1,8})(?P<rest>[，。！,.!]|$)"
)
_CHINESE_NAME = re.compile(
    rf"[{_SURNAMES}][\u3400-\u9fff]{{1,2}}"
    "|(?:欧阳|歐陽|司马|司馬|上官|诸葛|諸葛|慕容|司徒|夏侯|皇甫|东方|東方|尉迟|公孙|公孫|令狐|端木)[\u3400-\u9fff]{1,2}"
    "|[小阿][\u3400-\u9fff]|(?P<twice>[\u3400-\u9fff])(?P=twice)"
)
_OTHERS = re.compile(r"\s*(?:[他她它]|结果|結果|可是?|但|让|讓|你(?!好|呢|可以|叫))")
"""After 我叫 and a name, somebody else does something: `我叫小王，他不来。`"""
_SERVICES = frozenset(
    find_terms("Uber Didi Grab Lyft Bolt Taxi Siri Alexa Google Kfc Mc What Secret Nobody Who You Stop")
)

_JAPANESE = re.compile(
    r"(?:私|僕|俺|わたし|ぼく)の名前は(?P<value>[^\s、。！？!?「」]{1,12}?)(?P<end>です|だ|といいます)(?:よ|。|！|!|$)"
)
_JAPANESE_NAME = re.compile(
    r"[ァ-ヺー]{2,}(?:[・＝][ァ-ヺー]{2,}){0,2}|[A-Z][A-Za-z]+|[々\u4e00-\u9fff]{2,5}"
    r"|[ぁ-ゖ]{2,5}(?<![いなのんかとでもにをがはよねさ])"  # with these endings it can be another word
)
_JAPANESE_WORDS = re.compile(
    "(?:まだ|もう|多分|たぶん|実は)?(?:ヒミツ|ナイショ|ナニ|ダレ|フツウ|ダメ|ウソ|ニセモノ|バラバラ|ダサ.*|キライ|ヘン|ステキ|シンプル"
    "|ユニーク|レア|ダミー|タブー|秘密|内緒|極秘|機密|内密|無名|有名|普通|本名|偽名|仮名|匿名|別名|何者|何処|不明|未定|未詳|大事|大切"
    "|簡単|平凡|特別|自由|重要|無意味|最高|最悪|必要|不要|素敵|綺麗|奇麗|残念|無関係|適当|面倒|複雑|独特|英語|日本語|漢字|片仮名|平仮名"
    "|古風|立派|意味|問題|単純|奇妙|珍妙|同名|同姓同名|以上|以下|上記|下記|後程|後日|今度|質問|冗談|偽物|本物|一緒|同様|不詳|非公開"
    "|未公開|禁句|禁止|名無|難解|地味|派手|駄目|.*的|ひみつ|ないしょ|なに|だれ|ふつう|きら|へん|うそ|それ|これ|あれ|どれ|だめ|なし|べつ"
    "|ここ|そこ|ほんとう|いっしょ|おなじ|むずかし.*)"
)
"""What people say about a name instead of it."""


def read_name(said: str, following: str = "") -> SaidName | None:
    """Return the name that the sentence `said` gives, or None. `following` is the sentence after it.

    A name that is given in two steps is returned in full: "My name is Bond, James Bond."
    """
    for pattern, no_names, is_firm in _FORMS:
        found = pattern.match(said)
        if found:
            return _check(found["value"], said[found.end() :], following, no_names, is_firm=is_firm)
    value = _read_chinese(said) or _read_japanese(said)
    return SaidName(value, is_firm=True) if value else None


def _check(value: str, rest: str, following: str, no_names: frozenset[str], *, is_firm: bool) -> SaidName | None:
    words = [word.casefold().replace("’", "").replace("'", "") for word in value.split()]
    is_initial = len(words[-1]) == 1 and re.match(r"\.\s*\w", rest) is not None
    if not no_names.isdisjoint((words[0], words[-1])) or is_initial or _REASON.match(rest) or takes_back(rest):
        return None
    if not is_firm and (_BUT.match(rest) or _DISLIKE.search(rest) or any(map(_ADJECTIVE.fullmatch, words))):
        return None
    in_full = _IN_FULL.match(f"{rest} {following}".rstrip())
    if in_full and value in (" ".join(in_full["value"].split()[-len(words) :]), in_full["value"].split()[0]):
        value = in_full["value"]
    return SaidName(value, is_firm)


def _read_chinese(said: str) -> str | None:
    found = _CHINESE.match(said)
    if found is None or _OTHERS.match(said, found.end()):
        return None
    value = found["value"]
    if value.isascii():
        return None if value.split()[0] in _SERVICES else value
    if _ORDINARY.search(value) or not set(value).isdisjoint(_GIVEN_AWAY):
        return None
    if "·" in value or _CHINESE_NAME.fullmatch(value):
        return value
    return value if found["said"] != "我叫" and _TRANSCRIBED.fullmatch(value) else None


def _read_japanese(said: str) -> str | None:
    found = _JAPANESE.match(said)
    if found is None or _JAPANESE_WORDS.fullmatch(found["value"]):
        return None
    return found["value"] if _JAPANESE_NAME.fullmatch(found["value"]) else None
