import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { codemachine } from '../../../support/codemachine.ts'
import { type Emulator, startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, folder, held, round, writeTasks } from '../../../support/rounds.ts'

const TOKEN = 'tk_4711_abcDEF_zyx9876_Q'
const SHOWN = '[secret MY_API_TOKEN]'
const env = { MY_API_TOKEN: TOKEN }
/** What would tell that a part of it was shown. */
const PART = 'tk_4711'

promise(
  'B91',
  "A secret in a prompt, in the title of a session or in the name of a task is not shown: in the header, the window's title, `status` and `watch`",
)
test('a secret in the prompt, in a title or in the name of a task is shown in no place that reads them', async () => {
  const titled = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const rounds = [
    [
      held(titled.promise),
      reply(shell(writeTasks([{ id: 'T1', name: `Try ${TOKEN} out`, done: false }]))),
      reply(shell(`sed -i 's/^short_title:.*/short_title: With ${TOKEN} at hand/' ${folder}/MAIN.md`)),
      held(end.promise),
      ...round('true'),
    ],
    round(`sed -i 's/"done": false/"done": true/' ${folder}/tasks.json`, claimDone),
    round(claimDone),
  ]
  await using scene = await openRealScene(rounds)
  const { place } = scene
  const line = async () => (await codemachine(place, ['status', '--line'], { env: { MY_API_TOKEN: '' } })).stdout
  const size = { columns: 120, rows: 30, env }
  await using terminal = startInEmulator(place, ['--rounds', '5', `use ${TOKEN} for it`], size)
  await terminal.until(new RegExp(`· use \\${SHOWN} for it · round 1 of 5`, 'm'))
  await terminal.until(() => terminal.title().endsWith(` — use ${SHOWN} for it`))
  // A status bar may have another environment than the run.
  expect(await line()).toMatch(/^use \[secret… · .* · round 1 of 5/)
  titled.resolve()
  const isTold = (seen: Emulator) => seen.until(`Try ${SHOWN} out · 0 of 1 task`)
  await isTold(terminal)
  await terminal.until(() => terminal.title().endsWith(` — With ${SHOWN} at hand`))
  await using watching = startInEmulator(place, ['watch'], size)
  await isTold(watching)
  const told = await codemachine(place, ['status', '--line'], { env })
  expect(told.stdout).toMatch(/^With \[secret… · .*round 1 of 5/)
  const status = await codemachine(place, ['status', '--json'], { env })
  expect(status.stdout).toContain(`Try ${SHOWN} out`)
  const all = { line: told.stdout, status: status.stdout, text: (await codemachine(place, ['status'], { env })).stdout }
  end.resolve()
  expect((await terminal.ended).exitCode).toBe(0)
  for (const [name, text] of Object.entries({ ...all, screen: terminal.bytes(), watch: watching.bytes() })) {
    expect(text, name).not.toContain(PART)
  }
})

promise('B92', 'A secret that comes in two pieces is shown in no part while it comes')
test('a secret that a command prints in two halves is shown as one, while it is still running', async () => {
  const end = Promise.withResolvers<void>()
  const printing = (file: string) => `until [ -s ${file} ]; do sleep 0.05; done; cat ${file}`
  const halves = reply(shell(['one', 'two', 'three'].map(printing).join('; ')))
  await using scene = await openRealScene([[halves, held(end.promise)], round(claimDone), round(claimDone)])
  const print = (file: string, text: string) => writeFile(join(scene.place.directory, file), text)
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 120, rows: 30, env })
  await terminal.until('$ until [ -s one ]')
  await print('one', `begun\nit is ${TOKEN.slice(0, 10)}`)
  await terminal.until('it is')
  await print('two', `${TOKEN.slice(10)}, it says\n`)
  await terminal.until(`it is ${SHOWN}, it says`)
  await print('three', 'over\n')
  await terminal.until('Working.')
  expect(terminal.bytes()).not.toContain(PART)
})
