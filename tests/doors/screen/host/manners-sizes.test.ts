import { expect } from 'vitest'
import { message, reasoning, reply, shell } from '../../../../src/demo/model/reply.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { openScene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'
import { gate, leavesAsFound, rowsWith, started, wipesIn } from './manners.ts'

const WORDS = 'words that are said one after the other, '.repeat(30)

test.each([
  [80, 24],
  [120, 40],
  [40, 10],
])(
  'on %i×%i all that a person needs is there, and nothing is wider or as high as the screen',
  async (columns, rows) => {
    const { opened, open } = gate()
    const rounds = [
      reply(shell('seq 1 200')),
      reply(reasoning('Thinking.'), message(WORDS), hold(opened)),
      reply(message('Over.')),
    ]
    await using scene = await openScene([rounds])
    await using seen = drawHere(scene, ['--rounds', '1'], { columns, rows })
    const fits = (what: string) => {
      const screen = seen.screen()
      expect(Math.max(...screen.map(widthOf)), what).toBeLessThanOrEqual(columns)
      expect(screen.at(-1), `${what}: below the frame there is a row`).toBe('')
      return screen
    }

    await started(seen)
    const [logo = ''] = fits('start screen')
    expect(logo.includes('CODE MACHINE')).toBe(columns < 70)
    expect(seen.cursor()).toMatchObject({ x: 2, visible: true })

    seen.type('Make it')
    seen.press('enter')
    await seen.until(/running/)
    await seen.until('the other,')
    const running = fits('session')
    expect(rowsWith(running, /^\S running · Make it/)).toHaveLength(1)
    expect(rowsWith(running, /^› *$/)).toHaveLength(1)

    seen.type('/')
    await seen.until('❯ /steer')
    fits('popup')
    expect(rowsWith(seen.screen(), '› /')).toHaveLength(1)
    expect(seen.screen().join('\n')).toContain('Enter runs /steer')
    seen.press('backspace')
    await seen.until(rows => rowsWith(rows, '/steer').length === 0)

    seen.press('ctrl+c')
    await seen.until('modify the plan?')
    expect(fits('question').join('\n')).toMatch(/^\S running/m)
    seen.press('esc')
    await seen.until(rows => rowsWith(rows, 'modify the plan').length === 0)

    open()
    await seen.untilInAll('/report · /diff · /sessions · /resume')
    await seen.untilInAll('To continue: /resume')
    expect(rowsWith(seen.all(), 'codemachine rewind')).toEqual([])
    await started(seen)
    fits('start screen again')
    seen.press('ctrl+d')
    await leavesAsFound(seen)
    expect(wipesIn(seen)).toEqual([])
    expect(rowsWith(seen.all(), /^(?:› |─+$)/), 'nothing of a frame stays behind').toEqual([])
  },
)
