import { clipEnd } from '../base/clip.ts'

/** The most of one text that goes into an event, in characters. */
export const MOST_CHARACTERS = 64 * 1024

/** A text of codex as an event holds it: its first 64 Ki characters. */
export function boundedText(text: string): string {
  return clipEnd(text, MOST_CHARACTERS)
}

/** As `boundedText`, for a text that may be missing; then null. */
export function boundedOrNull(text: string | null | undefined): string | null {
  return text == null ? null : boundedText(text)
}
