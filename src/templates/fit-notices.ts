import { clipEnd } from '../base/clip.ts'
import { isFromPerson } from '../session/notices.ts'

/**
 * What a round is told of these notices, a line of a list each, in their order and in at most `most` characters. The
 * person's own words are the last to go, then the newest; one that is too long is cut, and the last line says how many
 * are left out. Pure.
 */
export function fitNotices(notices: readonly string[], most: number): string[] {
  const kept = new Map<number, string>()
  let room = most - LAST_LINE_CHARACTERS
  for (const at of byWeight(notices)) {
    const line = fitLine(`- ${notices[at]}`, room)
    if (line === null) continue
    kept.set(at, line)
    room -= line.length + '\n'.length
  }
  const lines = notices.flatMap((_, at) => kept.get(at) ?? [])
  const left = notices.length - lines.length
  return left === 0 ? lines : [...lines, `- There was no room here for ${left} more.`]
}

/** Room for the line that says how many are left out. */
const LAST_LINE_CHARACTERS = 100
/** Room for what `clipEnd` says of the rest, and the end of the line. */
const CUT_CHARACTERS = 100
/** A shorter piece of a notice says nothing. */
const LEAST_CHARACTERS = 1000

/** Where the notices are in their list, those that must be told first. */
function byWeight(notices: readonly string[]): number[] {
  const newestFirst = [...notices.keys()].reverse()
  const isTold = (at: number) => isFromPerson(notices[at] ?? '')
  return [...newestFirst.filter(isTold), ...newestFirst.filter(at => !isTold(at))]
}

function fitLine(line: string, room: number): string | null {
  if (line.length < room) return line
  return room < LEAST_CHARACTERS ? null : clipEnd(line, room - CUT_CHARACTERS)
}
