import { expect, test } from 'vitest'
import { message, reply } from '../../../../src/demo/model/reply.ts'
import { act, cuts, openRealChangeScene, outputs, PROJECT, plans, verify } from '../../../support/change-scene.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'

const FILES = Array.from({ length: 12 }, (_, i) => ({
  path: `src/限流-${i + 1}.ts`,
  change: `Part ${i + 1} of the bucket.`,
}))

promise('C82', 'On the screen a change is begun, its plan shown, changed and accepted, and what follows it offered')
test('a change is begun on a small screen with /change; its plan is scrolled, changed, seen again from what changed, and accepted; /follow is offered', async () => {
  await using scene = await openRealChangeScene(
    {
      planner: (_, nth) => [
        plans({ files: FILES, risks: nth === 0 ? ['A proxy \x1b[2J shares one.'] : ['None any more.'] }),
      ],
      decomposer: [[cuts(act('T1', { files: ['limit.txt'] }), verify('T2', 'sh check.sh'))]],
      executor: [[outputs({})]],
      fixer: [[outputs({})]],
      summary: [[reply(message('I looked at the limit.'))]],
    },
    { executor: false, files: PROJECT, settings: () => '[change]\nfix_attempts = 1\n' },
  )
  await using terminal = startInEmulator(scene.place, [], { columns: 60, rows: 16 })
  await terminal.until('keys')
  terminal.type('/change limit the requests')
  await terminal.until('› /change limit the requests')
  terminal.press('enter')
  await terminal.until('Version 1 of the plan is ready')
  await terminal.until(/1\. Carry it out/)
  await terminal.until(/1–\d+ of \d+/)
  terminal.press('end')
  await terminal.until('No test or build command')
  terminal.press('down')
  await terminal.until(/❯ 2\. Change it/)
  terminal.press('enter')
  await terminal.until('Esc goes back')
  terminal.type('mind the proxies')
  await terminal.until('› mind the proxies')
  terminal.press('enter')
  await terminal.until('Version 2 of the plan is ready')
  await terminal.until(
    /mind the proxies\n(?:.*\n)*.*What changed since version 1\n(?:.*\n)*.*Added risk: None any more\./,
  )
  terminal.press('end')
  await terminal.until('No test or build command')
  // The plan that was decided on stands above, drawn, and the answer as it came does not.
  const all = () => terminal.all().join('\n')
  expect(all()).toContain('• `src/限流-1.ts`: Part 1 of the bucket.')
  expect(all()).not.toContain('{"description"')
  terminal.type('/plan accept "mind them twice"')
  await terminal.until('/plan accept "mind them twice"')
  terminal.press('enter')
  await terminal.untilInAll('decided by a person: Carry it out: mind them twice')
  await terminal.untilInAll(/ended ─|session \S+ ended/)
  await terminal.until('/follow')
  expect(all()).toMatch(/Task 1\/2 ACTION/)
  terminal.press('ctrl+d')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})
