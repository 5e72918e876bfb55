import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { openChangeScene, outputs, PROJECT, TWO_TASKS } from '../../../support/change-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { git } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

/** Ends as soon as there is a plan. */
const PLAN = ['change', '--auto', '--plan-only', '--json']

const warningsOf = (events: Parameters<typeof eventsOf>[0]) => eventsOf(events, 'warning').map(({ message }) => message)

test('where nobody has said who carries out tasks and ollama answers on this machine, a line says how to use it', async () => {
  const settings = (url: string) => `[providers.ollama]\nbase_url = "${url}"\n`
  await using scene = await openChangeScene(TWO_TASKS, { executor: false, settings, files: PROJECT })
  const said =
    'ollama runs on this machine. To let it carry out the tasks, name its model first, such as model = "qwen" below [providers.ollama] of your config.toml; then codemachine change --executor ollama "…"'
  const first = await scene.run(...PLAN, 'write the limit')
  expect(first.exitCode, first.stderr).toBe(0)
  expect(warningsOf(first.events)).toContainEqual(expect.stringContaining(said))
  const others = await scene.run(...PLAN, '--no-local', 'write the limit')
  expect(warningsOf(others.events).join('\n')).not.toContain('ollama')
  await scene.local.goAway()
  expect(warningsOf((await scene.run(...PLAN, 'write the limit')).events).join('\n')).not.toContain('ollama')
})

test('without a repository, in an empty directory, a change is made too, and what that means is said; its request may come from standard input', async () => {
  await using scene = await openChangeScene(
    {
      ...TWO_TASKS,
      executor: [
        [reply(shell('echo 10 > limit.txt; echo "grep -q 10 limit.txt" > check.sh')), outputs({ written: 'both' })],
      ],
    },
    { git: false },
  )
  const input = 'write the limit\nand a check of it\n'
  const { exitCode, events, stderr } = await scene.command(['change', '--auto', '--json', '-'], { input }).ended
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(eventsOf(events, 'session-created')).toMatchObject([{ goal: 'write the limit\nand a check of it' }])
  // Nobody has seen the commands that its plan names.
  expect(eventsOf(events, 'done-accepted')).toMatchObject([{ verified: false }])
  expect(warningsOf(events)).toContainEqual(expect.stringContaining('This directory is not a git repository, so'))
  expect(await readFile(join(scene.place.directory, 'limit.txt'), 'utf8')).toBe('10\n')
  const { stdout } = await codemachineHere(scene.place, ['diff', '--stat'])
  expect(stdout).toContain('limit.txt')
})

promise('C68', 'A prompt of the queue becomes a change with the settings of the moment when its turn comes')
test('a prompt of the queue becomes a change, with the settings of the moment when its turn comes', async () => {
  await using scene = await openChangeScene(TWO_TASKS, { files: PROJECT })
  const { place } = scene
  const queued = await codemachineHere(place, [
    'queue',
    'add',
    '--template',
    'change',
    '--verify',
    'sh check.sh',
    'write the limit',
  ])
  expect(queued).toMatchObject({ exitCode: 0, stderr: '' })
  const config = join(place.home, '.config', 'codemachine', 'config.toml')
  const before = await readFile(config, 'utf8')
  await writeFile(config, before.replace('[change]\n', '[change]\nreview = "auto"\nfix_attempts = 6\n'))
  const { exitCode, events, stderr } = await scene.run('--json')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(eventsOf(events, 'session-created')).toMatchObject([
    {
      queued: '000001',
      template: 'change',
      options: { review: 'auto', fixAttempts: 6, executor: { provider: 'local' } },
    },
  ])
  expect(eventsOf(events, 'done-accepted')).toMatchObject([{ verified: true }])
  expect(scene.begun('executor').map(({ at }) => at)).toEqual(['local'])
})

test('with --worktree the change is on a branch of its own, which land commits and merges', async () => {
  await using scene = await openChangeScene(TWO_TASKS)
  const { place } = scene
  await writeFile(join(place.directory, 'check.sh'), 'grep -q 10 limit.txt\n')
  git(place, 'add', '.')
  git(place, 'commit', '-qm', 'Add a check')
  const { exitCode, stderr } = await scene.run('change', '--auto', '--worktree', 'limit', '--json', 'write the limit')
  expect(exitCode, stderr).toBe(0)
  expect(stderr).toContain('on the new branch codemachine/limit')
  expect(existsSync(join(place.directory, 'limit.txt'))).toBe(false)
  const landed = await codemachineHere(place, ['land', 'limit', '--commit', 'Write the limit'])
  expect(landed).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await readFile(join(place.directory, 'limit.txt'), 'utf8')).toBe('10\n')
})
