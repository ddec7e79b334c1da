"""Texts of several kinds, to hold token counts against: this project's own, and sentences in other scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]

SENTENCES: Final = {
    "chinese": (
        "请把这个文件夹里的所有图片按照拍摄日期重新命名，然后上传到云端。上个月的账单里有三笔费用我不认识，麻烦你查一下。"
        "如果程序在启动时出现错误，先查看日志的最后几行，再决定要不要重新安装。明天早上八点的火车，别忘了带身份证。"
    ),
    "japanese": (
        "駅の近くにある小さな喫茶店で、友達と二時間ほど話しました。このボタンを押すと、選択したファイルがすべて削除されます。"
        "本当に続けますか？来週の水曜日までに、レポートの下書きを送っていただけると助かります。"
    ),
    "korean": (
        "주말에 가족과 함께 바다에 다녀왔는데 날씨가 정말 좋았어요. 파일을 저장하기 전에 이름과 위치를 다시 "
        "확인하십시오. 오류가 계속되면 프로그램을 종료하고 관리자에게 문의해 주세요."
    ),
    "arabic": (
        "سافرت العائلة إلى البحر في نهاية الأسبوع وكان الطقس جميلا جدا. تأكد من اسم الملف ومكانه قبل الحفظ، وإذا "
        "استمر الخطأ فأغلق البرنامج واتصل بالمسؤول. هل يمكنك أن تخبرني متى يصل القطار القادم إلى المدينة؟"
    ),
    "hindi": (
        "सप्ताहांत में परिवार के साथ हम पहाड़ों पर घूमने गए और मौसम बहुत अच्छा था। फ़ाइल सहेजने से पहले उसका नाम और स्थान जाँच लें। "
        "अगर गलती बार-बार आती है तो प्रोग्राम बंद करके हमें लिखें। अगली ट्रेन कितने बजे आएगी?"
    ),
    "russian": (
        "На выходных мы всей семьёй ездили к морю, и погода была прекрасная. Прежде чем сохранить файл, проверьте его "
        "имя и расположение. Если ошибка повторяется, закройте программу и напишите администратору. "
        "Когда приходит следующий поезд?"
    ),
    "german": (
        "Am Wochenende sind wir mit der ganzen Familie ans Meer gefahren, und das Wetter war herrlich. Prüfen Sie vor "
        "dem Speichern den Namen und den Ort der Datei. Wenn der Fehler bleibt, "
        "schließen Sie das Programm und schreiben uns."
    ),
    "emoji": (
        "On our way 🚗💨 to the beach 🏖️☀️😎! Tests: ✅✅❌ 🐛 found, fixing 🔧🙏. "
        "🎂🥳 for Ana 👩🏽‍💻, 🇧🇷 vs 🇯🇵 ⚽ at 8 🕗 ❤️‍🔥 👏👏"
    ),
}


def _files(folder: str, pattern: str) -> tuple[str, ...]:
    found = sorted((ROOT / folder).glob(pattern))
    return tuple(text for path in found if len(text := path.read_text("utf-8")) >= 1_000)


CORPUS: Final[dict[str, tuple[str, ...]]] = {
    "english": tuple(text for text in _files("docs", "*.md") if sum(map(str.isdigit, text)) < len(text) / 25),
    "code": _files("src/toolglot", "**/*.py"),
    "json": _files("tests/recordings", "*/*.json"),
    **{kind: (text,) for kind, text in SENTENCES.items()},
}
"""Kind → texts. A file of fewer than a thousand characters says little, and a page of figures is not English."""
