/** The lines of a Markdown text as [number, text], without fenced code. */
export function* proseLines(markdown) {
  let fence = null
  for (const [index, text] of markdown.split('\n').entries()) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(text)?.[1]
    if (fence === null && mark !== undefined) fence = mark
    else if (fence !== null && mark?.startsWith(fence)) fence = null
    else if (fence === null) yield [index + 1, text]
  }
}
