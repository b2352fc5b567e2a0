"""The same page in a notebook: ``manifoldknn.label(frame)`` shows it, and has the labels."""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

from manifoldknn.base.parameters import PARAMETERS
from manifoldknn.labelling.desk import Desk
from manifoldknn.labelling.journal import JournalError
from manifoldknn.labelling.project import open_desk
from manifoldknn.labelling.rows import ForbiddenError

_MODULES = ("dom.js", "row.js", "map.js", "panels.js", "keys.js", "app.js")
_RENDER = """
const render = ({ model, el }) => {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", (answer) => {
    const [done, failed] = waiting.get(answer.number) || [];
    waiting.delete(answer.number);
    if (!done) return;
    if (answer.error) failed(new Error(answer.error)); else done(answer.told);
  });
  const ask = (name, question) => new Promise((done, failed) => {
    waiting.set(++number, [done, failed]);
    model.send({ number, name, question });
  });
  el.tabIndex = -1; // so that keys come here, and no shortcut of the notebook takes them
  el.dataset.lmSuppressShortcuts = "true";
  let stop = () => {};
  mount(el, ask, { who: model.get("who") }).then((end) => { stop = end; });
  return () => stop();
};
export default { render };
"""


def label(
    frame: Any,
    *,
    label: str | None = None,
    id: str | None = None,
    classes: Any = (),
    show: Any = None,
    text: str | None = None,
    features: Any = None,
    drop: Any = None,
    who: str = "me",
    journal: Any = None,
) -> Any:
    """Label the rows of a frame in a notebook.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        The rows; columns become features as on the command line.
    label : str, optional
        Column that holds labels already, empty where there is none.
    id : str, optional
        Column that names the rows.
    classes : sequence of str, optional
        Classes to begin with.
    show, features, drop : sequence of str, optional
        Columns to show, to compare rows by, and to leave out of that.
    text : str, optional
        Column that is read in full.
    who : str, default="me"
        Who labels.
    journal : path, optional
        Where labels are kept; by default they are gone with the kernel.

    Returns
    -------
    anywidget.AnyWidget
        Shown by the notebook. Its ``labels`` is a column for the frame, None where there is no
        label; ``answers`` is one with what the model says of other rows.

    Notes
    -----
    Needs ``manifoldknn[notebook]``, which is anywidget.
    """
    try:
        import anywidget
        import traitlets
        from pyarrow import feather
    except ImportError as error:
        raise ImportError("label needs anywidget: pip install 'manifoldknn[notebook]'") from error
    table, folder = _arrow(frame), tempfile.TemporaryDirectory()
    path = Path(folder.name) / "frame"
    feather.write_feather(table, str(path), compression="uncompressed")
    options = dict.fromkeys((*PARAMETERS, "as_published", "unlabeled", "na", "image", "delimiter"))
    options |= {"encoding": None, "overlap": 0.0, "scale": True, "format": "arrow"}
    options |= {
        "command": "label", "file": str(path), "label": label, "id": id, "show": _listed(show),
        "text": text, "features": _listed(features), "drop": _listed(drop), "journal": journal,
        "classes": ",".join(classes),
    }  # fmt: skip
    try:
        desk, _ = open_desk(argparse.Namespace(**options))
    except BaseException:
        folder.cleanup()
        raise

    class Labeller(anywidget.AnyWidget):
        """The page, and its labels."""

        _esm, _css = page_module(), (Path(__file__).parent / "page" / "page.css").read_text("utf-8")
        who = traitlets.Unicode().tag(sync=True)

        @property
        def labels(self) -> list[str | None]:
            """A label for every row, None where there is none."""
            return desk.column(guessed=False)

        @property
        def answers(self) -> list[str | None]:
            """A label for every row, as people or else the model say."""
            return desk.column(guessed=True)

        def close(self) -> None:
            """End the work behind the page."""
            desk.close()
            folder.cleanup()
            super().close()

    widget = Labeller(who=who)
    widget.on_msg(lambda _, message, __: widget.send(answered(desk, message)))
    desk.open()
    return widget


def answered(desk: Desk, message: Any) -> dict[str, Any]:
    """Return the answer to a question of the page, or what is wrong with it."""
    try:
        name, question = str(message["name"]), dict(message["question"])
        told = desk.call(name, question)
    except (ValueError, LookupError, JournalError, ForbiddenError) as error:
        return {"number": message.get("number"), "error": str(error) or type(error).__name__}
    return {"number": message["number"], "told": told}


def page_module() -> str:
    """Return the scripts of the page as one module, since a notebook takes only one."""
    folder = Path(__file__).parent / "page"
    texts = [(folder / name).read_text("utf-8") for name in _MODULES]
    bare = [re.sub(r"^(import .*;\n|export )", "", text, flags=re.MULTILINE) for text in texts]
    return "\n".join([*bare, _RENDER])


def _arrow(frame: Any) -> Any:
    """Return a frame as an Arrow table, without its index."""
    import pyarrow as pa

    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "iloc"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    raise ValueError("frame must be a pandas or polars DataFrame: make one of your rows.")


def _listed(names: Any) -> list[str] | None:
    return [names] if isinstance(names, str) else None if names is None else list(names)
