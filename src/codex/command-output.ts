import { stripVTControlCharacters } from 'node:util'
import { lastLines } from '../base/clip.ts'
import { Tail } from './tail.ts'

/** Of the bytes as they came: what steers a terminal is still in them. */
const KEPT_BYTES = 64 * 1024

/** The last of what a command prints, however much that is. */
export class CommandOutput {
  readonly #tail = new Tail(KEPT_BYTES)

  push(bytes: Buffer): void {
    this.#tail.push(bytes)
  }

  /** Its last lines, at most `limit` characters, as plain text: without colours, and of a line that was written over what stands there last. */
  text(limit: number): string {
    const lines = stripVTControlCharacters(this.#tail.text().toWellFormed()).split(/\r*\n/)
    return lastLines(lines.map(plainLine).join('\n').trimEnd(), limit)
  }
}

/** A progress bar goes back to the start of its line and writes over it. */
function plainLine(line: string): string {
  const written = line.replace(/\r+$/, '')
  return written.slice(written.lastIndexOf('\r') + 1).replace(CONTROL, '')
}

const CONTROL = /[^\t\P{Cc}]/gu
