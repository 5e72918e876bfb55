import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { leavesAsFound, personSettings, rowsWith } from './manners.ts'

/** A round with something of each kind to draw. */
export const ROUNDS = [[reply(message('A **word** and `code`.'), shell('seq 1 5')), reply(message('Over.'))]]
const BOXES = /[─│╭╮╰╯›❯✔▸]/

/** Plays a session in a terminal in which the program is started by this command: it prints lines, and draws nothing. */
export async function seesPlainLines(command: string[]): Promise<void> {
  await using scene = await openRealScene(ROUNDS)
  await using seen = startInEmulator(scene.place, ['--rounds', '1', 'Say it'], { command })
  await leavesAsFound(seen)
  const all = seen.all().join('\n')
  expect(all).toContain('Over.')
  expect(all).not.toMatch(BOXES)
  expect(seen.bytes()).not.toContain('\x1b[')
}

/** Plays a session for a screen reader: what is said stands there once, as words, and nothing is drawn. */
export async function hearsWordsOnce(env: Record<string, string>, settings: string): Promise<void> {
  await using scene = await openRealScene(ROUNDS)
  await personSettings(scene.place, settings)
  await using seen = startInEmulator(scene.place, ['--rounds', '1'], { env })
  await seen.until('Type a goal')
  seen.press('ctrl+c')
  await seen.until('Ctrl+C again leaves')
  seen.type('Say it')
  await seen.until('> Say it')
  seen.press('enter')
  await seen.untilInAll(/To continue: (?:codemachine |\/)resume/)
  const all = seen.all()
  expect(all.join('\n')).not.toMatch(BOXES)
  expect(rowsWith(all, 'Over.')).toHaveLength(1)
  expect(rowsWith(all, 'A word and `code`.')).toHaveLength(1)
  expect(seen.bytes().split('Over.')).toHaveLength(2)
  expect(seen.bytes()).not.toMatch(/\d:\d\d ·/)
  seen.press('ctrl+d')
  await leavesAsFound(seen)
}
