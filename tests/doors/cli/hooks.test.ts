import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene, writePersonSettings } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

promise('B130', "A hook of the person's file runs as the person; one of a project's file runs in the sandbox alone")
test("a person's hook runs as the person, a project's in the sandbox, and what one refuses is read by both", async () => {
  await using scene = await openRealScene([
    round('echo work > work.txt'),
    round(claimDone),
    round('echo 2 > ok'),
    round(claimDone),
  ])
  const { home, directory } = scene.place
  const reach = `exec 3<>/dev/tcp/127.0.0.1/${new URL(scene.model.url).port}`
  await writePersonSettings(
    scene.place,
    `[hooks.before_round]
run = 'printf "%s " "$CODEMACHINE_ROUND" >> "$HOME/rounds"; echo noisy; ${reach}'
[hooks.on_claim]
run = 'test -e ok || { echo "CI of main is red."; exit 1; }'
on_error = "refuse"
[hooks.on_end]
run = 'printf "%s %s" "$CODEMACHINE_OUTCOME" "$CODEMACHINE_DIRECTORY" > "$HOME/end"'
`,
  )
  await writeFile(join(directory, 'codemachine.toml'), `[hooks.after_round]\nrun = '${reach}'\n`)
  const { exitCode, stdout, events } = await scene.run('--json', '--no-keep-awake', 'build X')
  expect(exitCode, stdout).toBe(0)
  expect(await readFile(join(home, 'rounds'), 'utf8')).toBe('1 2 3 4 ')
  expect(await readFile(join(home, 'end'), 'utf8')).toBe(`done ${directory}`)
  const ended = eventsOf(events, 'hook-ended')
  expect(ended[0]).toMatchObject({ hook: 'before_round', of: 'person', status: 'passed', output: 'noisy' })
  const ofProject = ended.filter(({ of }) => of === 'project')
  expect(ofProject.map(({ status }) => status)).toEqual(Array(4).fill('failed'))
  const refused = eventsOf(events, 'done-refused').map(({ reason }) => reason)
  expect(refused).toEqual(['hook-refused', 'tree-changed'])
  expect(scene.input(3)).toContain('the hook on_claim says: CI of main is red.')
})

promise(
  'B139',
  "The git of a person's hook runs nothing that a round or a project's hook put into the repository's settings",
)
test("what a round or a project's hook writes into .git/config is restored before a person's hook runs", async () => {
  const plant = 'git config core.fsmonitor "$PWD/planted"'
  await using scene = await openRealScene([
    round(`printf '#!/bin/sh\\necho "$0" >> "$HOME/ran"' > planted; chmod +x planted; ${plant}; ${claimDone}`),
    round(`${plant}; ${claimDone}`),
  ])
  const { home, directory } = scene.place
  const look = `run = 'git config core.fsmonitor >> "$HOME/seen"; git status'\n`
  const person = ['after_round', 'on_claim', 'on_end'].map(on => `[hooks.${on}]\n${look}`).join('')
  await writePersonSettings(scene.place, person)
  const project = ['after_round', 'on_done'].map(on => `[hooks.${on}]\nrun = '${plant}'\n`).join('')
  await writeFile(join(directory, 'codemachine.toml'), project)
  const { exitCode, stdout, events } = await scene.run('--json', '--no-keep-awake', 'build X')
  expect(exitCode, stdout).toBe(0)
  expect(await readFile(join(home, 'seen'), 'utf8')).toBe('')
  await expect(readFile(join(home, 'ran'), 'utf8')).rejects.toThrow('ENOENT')
  expect(eventsOf(events, 'repository-restored').length).toBeGreaterThanOrEqual(4)
})

test('a hook that is killed or prints without end is told as that', async () => {
  await using scene = await openScene([round(claimDone)], {
    person: `[hooks.before_round]\nrun = 'echo so far; kill -9 $$'\n[hooks.after_round]\nrun = "yes"\n`,
  })
  const { exitCode, events } = await scene.run('--json', 'build X')
  expect(exitCode).toBe(0)
  const [killed, endless] = eventsOf(events, 'hook-ended')
  expect(killed).toMatchObject({ status: 'failed', output: 'so far\nIt was ended by SIGKILL.', problem: null })
  expect(endless).toMatchObject({ status: 'failed', output: expect.stringContaining('printed more than 16 MB') })
})

test('a mistake in a hook is one sentence with its place, and nothing starts', async () => {
  await using scene = await openScene([])
  const file = join(scene.place.directory, 'codemachine.toml')
  for (const [text, sentence] of [
    ['[hooks.on_claim]\n', 'hooks.on_claim.run is missing; write what it runs'],
    ['[hooks.on_claims]\nrun = "x"\n', 'did you mean "on_claim"?'],
    ['[hooks.on_done]\nrun = "x"\non_error = "refuse"\n', 'at this moment a hook cannot refuse anything; leave it out'],
    ['[hooks.on_claim]\nrun = "x"\non_error = "stop"\n', 'hooks.on_claim.on_error'],
    ['[hooks.on_claim]\nrun = "x"\ntimeout = "5h"\n', 'hooks.on_claim.timeout is longer than a command may take'],
  ] as const) {
    await writeFile(file, text)
    const { exitCode, stderr } = await scene.run('build X')
    expect(exitCode, text).toBe(2)
    expect(stderr).toContain(sentence)
    expect(stderr).toContain('codemachine.toml:')
  }
})
