// The page in a browser: questions go to the server by HTTP.

import { mount } from "./app.js";

const ask = async (name, question) => {
  let answer;
  try {
    answer = await fetch("api/" + name, { method: "POST", body: JSON.stringify(question), headers: { "Content-Type": "application/json" } });
  } catch {
    throw new Error("The server does not answer: nothing is labelled until it does. Start the command again and open its new address.");
  }
  const told = await answer.json().catch(() => ({ error: "The server refused: open the address that the command printed." }));
  if (!answer.ok) throw new Error((answer.status === 507 ? "Labelling has stopped. " : "") + told.error);
  return told;
};

history.replaceState(null, "", location.pathname); // the token is in a cookie now
const name = "manifoldknn.name";
mount(document.body, ask, {
  who: localStorage.getItem(name),
  remember: (who) => localStorage.setItem(name, who),
  keys: document,
  exports: ["csv", "parquet", "jsonl"],
}).catch((error) => { document.body.textContent = error.message; });
