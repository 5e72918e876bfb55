import { expect } from 'vitest'
import { message, reply } from '../../../../src/demo/model/reply.ts'
import { BIN } from '../../../support/codemachine.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { leavesAsFound, personSettings, rowsWith, started } from './manners.ts'
import { hearsWordsOnce, ROUNDS, seesPlainLines } from './plain-lines.ts'

describe('without a terminal that can be drawn on there are plain lines', () => {
  test.each<[string, string[]]>([
    ['a dumb terminal', ['env', 'TERM=dumb', process.execPath, BIN]],
    ['no terminal to read from', ['sh', '-c', `'${process.execPath}' '${BIN}' "$@" </dev/null`, 'sh']],
    ['a closed stdin', ['sh', '-c', `'${process.execPath}' '${BIN}' "$@" <&-`, 'sh']],
    ['no terminal to write to', ['sh', '-c', `'${process.execPath}' '${BIN}' "$@" | cat`, 'sh']],
  ])('%s', async (_, command) => {
    await seesPlainLines(command)
  })
})

test('a terminal that answers no query is drawn on and takes keys like any other', async () => {
  await using scene = await openRealScene(ROUNDS)
  await using seen = startInEmulator(scene.place, ['--rounds', '1'], { mute: true })
  await started(seen)
  seen.type('Say it')
  seen.press('alt+enter')
  seen.type('twice')
  await seen.until(/Say it\n.*twice/)
  seen.press('enter')
  await seen.untilInAll(/To continue: (?:codemachine |\/)resume/)
  seen.press('ctrl+d')
  await leavesAsFound(seen)
})

describe('colours', () => {
  test.each<[string, Record<string, string | undefined>, string, RegExp | null]>([
    ['NO_COLOR is heeded', { NO_COLOR: '1' }, '', null],
    ['a light one', { NO_COLOR: undefined }, '[screen]\ntheme = "light"\n', /\d/],
  ])('%s', async (_, env, settings, colours) => {
    await using scene = await openRealScene(ROUNDS)
    await personSettings(scene.place, settings)
    await using seen = startInEmulator(scene.place, ['--rounds', '1', 'Say it'], { env })
    await seen.ended
    const sequences = seen.bytes().split('\x1b[').slice(1)
    const styled = sequences.map(text => /^([\d;:]*)m/.exec(text)?.[1]).filter(each => each !== undefined)
    const painting = styled.filter(each => /^(?:3[0-8]|4[0-8]|9\d|10\d)/.test(each))
    if (colours === null) expect(painting).toEqual([])
    else expect(painting).not.toEqual([])
  })
})

test('for a screen reader, by the setting, there are words without drawing, and each is said once', async () => {
  await hearsWordsOnce({}, '[screen]\nreader = true\n')
})

test('with reduced motion a message comes whole', async () => {
  await using scene = await openRealScene([[reply(message('Words that come as one. '.repeat(8)))]])
  await personSettings(scene.place, '[screen]\nmotion = "reduced"\n')
  await using seen = startInEmulator(scene.place, ['--rounds', '1', 'Say it'])
  await seen.ended
  expect(rowsWith(seen.all(), 'Words that come as one.').length).toBeGreaterThan(1)
})

test("for a screen reader, by Ink's variable, there are words without drawing, and each is said once", async () => {
  await hearsWordsOnce({ INK_SCREEN_READER: 'true' }, '')
})
