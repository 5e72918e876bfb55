/** The most that one prompt may take in UTF-8, 1 MiB: codex takes as many characters, and `MAIN.md` holds as many bytes. */
const MOST_BYTES = 1_048_576

/** Why a text cannot be a goal, a prompt or a remark for codex, as a sentence; null if it can. */
export function problemOfPrompt(prompt: string): string | null {
  return prompt.trim() === '' ? 'The prompt is empty; say what is to be done.' : problemOfPromptSize(prompt)
}

/** Why a text is too long to be one, as a sentence; null if it is not. */
export function problemOfPromptSize(prompt: string): string | null {
  // A NUL takes the three bytes of the U+FFFD that stands for it in a file.
  const bytes = Buffer.byteLength(prompt.replaceAll('\0', '\uFFFD'))
  if (bytes <= MOST_BYTES) return null
  return `The prompt has ${bytes} bytes, and may have at most ${MOST_BYTES} (1 MiB); put the text into a file and name that file.`
}
