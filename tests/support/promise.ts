/**
 * Says which promise to the user the test, or the group of tests, below it holds. `scripts/promises.ts` reads these calls from
 * the files, and `node scripts/promises-page.ts` makes docs/inside/promises.md of them.
 * @param id the letter of its section and a number that stays with it: `D4`
 * @param _sentence the promise; in one place of those with the same id
 */
export function promise(id: `${Capital}${number}`, _sentence?: string): void {
  if (!/^[A-Z][1-9]\d*$/.test(id)) throw new Error(`"${id}" is no id of a promise, such as D4.`)
}

type Capital = 'L' | 'D' | 'M' | 'W' | 'R' | 'B' | 'J' | 'O' | 'F' | 'C' | 'T' | 'P' | 'N' | 'E'

/**
 * Says which past fault the test, or the group of tests, below it would find again. They are the last section of the same page.
 * @param _kind what a user lost: a night, work, or the truth of a done
 * @param _fault what happened
 * @param _story the days on which it came in and was fixed, and what found it
 */
export function incident(
  _kind: 'false done' | 'lost night' | 'lost work',
  _fault: string,
  _story: { since: string; fixed: string; foundBy: string },
): void {
  // Read from the file alone.
}
