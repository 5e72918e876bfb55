import type { View } from '../session/view.ts'

/** Writes each event as one line of JSON, the very line that the journal holds. `write` gets whole lines. */
export function jsonView(write: (text: string) => void): View {
  return {
    event: event => write(`${JSON.stringify(event)}\n`),
    live() {},
  }
}
