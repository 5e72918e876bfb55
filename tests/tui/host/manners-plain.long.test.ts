import { BIN } from '../../support/codemachine.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { hearsWordsOnce, seesPlainLines } from './plain-lines.ts'

describe('without a terminal that can be drawn on there are plain lines', () => {
  test.each<[string, string]>([
    ['a closed stdin', '<&-'],
    ['no terminal to write to', '| cat'],
  ])('%s', async (_, how) => {
    await seesPlainLines(['sh', '-c', `'${process.execPath}' '${BIN}' "$@" ${how}`, 'sh'])
  })
})

test("for a screen reader, by Ink's variable, there are words without drawing, and each is said once", async () => {
  await hearsWordsOnce({ INK_SCREEN_READER: 'true' }, '')
})
