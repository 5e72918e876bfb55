import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openChangeScene } from '../../../support/change-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { promise } from '../../../support/promise.ts'

const SECRET = 'sk-live-0123456789abcdef'

promise('C67', '`--dry-run` starts, writes and asks nothing, and shows no secret')
test('--dry-run prints the context and what the planner is told, and starts, writes and asks nothing', async () => {
  await using scene = await openChangeScene(
    {},
    { files: { 'package.json': '{ "scripts": { "test": "node --test" } }\n', 'notes.md': `${SECRET}\n` } },
  )
  const { place } = scene
  const env = { API_TOKEN: SECRET }
  const request = `say in notes.md what ${SECRET} is`
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['change', '--dry-run', request], { env })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^A dry run: nothing is started, written or spent\.\nIt would be a change in /)
  expect(stdout).toContain("Planned by codex's own model (effort high); carried out by qwen from local.\n")
  expect(stdout).toContain('The plan would be shown, and carried out once it is accepted.\n')
  const sections = stdout.split('─── ').map(section => section.split('\n')[0])
  expect(sections.slice(1).map(title => title?.split(',')[0])).toEqual([
    'The request',
    'The context',
    'The planner: developer instructions',
    'The planner: input of its first round',
  ])
  expect(stdout).toContain('say in notes.md what [secret API_TOKEN] is')
  expect(stdout).toContain('npm test')
  expect(stdout).not.toContain(SECRET)
  expect(scene.model.requests).toEqual([])
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(false)
  expect(existsSync(join(place.home, '.codemachine'))).toBe(false)
  expect(execFileSync('git', ['status', '--porcelain'], { cwd: place.directory, encoding: 'utf8' })).toBe(
    '?? notes.md\n?? package.json\n',
  )
})

test('--dry-run shows no secret that is kept for the project', async () => {
  await using scene = await openChangeScene({}, { files: { 'notes.md': `${SECRET}\n` } })
  const { place } = scene
  const { exitCode: stored } = await codemachineHere(place, ['secret', 'set', 'SHOP_KEY'], { input: SECRET })
  const encoded = Buffer.from(SECRET).toString('hex')
  const request = `say in notes.md what ${SECRET} or ${encoded} is`
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['change', '--dry-run', request])
  expect({ stored, exitCode, stderr }).toEqual({ stored: 0, exitCode: 0, stderr: '' })
  expect(stdout).toContain('say in notes.md what [secret SHOP_KEY] or [secret SHOP_KEY] is')
  expect(stdout).not.toContain(SECRET)
})

test('--dry-run --json is one object, with the terms that the flags and the settings come to', async () => {
  await using scene = await openChangeScene({}, { executor: false })
  const typed = [
    'change',
    '-n',
    '--json',
    '--auto',
    '--fix-attempts',
    '7',
    '--planner-model',
    'strong',
    '--planner-effort',
    'low',
  ]
  const { exitCode, stdout } = await codemachineHere(scene.place, [...typed, '--executor', 'local', 'add a limit'])
  expect(exitCode).toBe(0)
  const dry = JSON.parse(stdout)
  expect(dry).toMatchObject({
    template: 'change',
    request: 'add a limit',
    follows: null,
    options: {
      review: 'auto',
      planOnly: false,
      fixAttempts: 7,
      executor: { provider: 'local', model: 'qwen', contextWindow: null, isLocal: true },
      planner: { model: 'strong', effort: 'low' },
    },
    planner: { model: 'strong', effort: 'low' },
  })
  expect(dry.planner.input).toContain('add a limit')
  expect(dry.planner.developerInstructions).toContain(scene.place.directory)
  expect(dry.planner.input).toContain(dry.context.slice(0, 100).trim())
})

test('--dry-run has no worktree, and no other directory than one that is there', async () => {
  await using scene = await openChangeScene({})
  const worktree = await codemachineHere(scene.place, ['change', '--dry-run', '--worktree', 'x', 'add a limit'])
  expect(worktree.stderr).toContain('--dry-run makes no worktree; leave --worktree out')
  const elsewhere = await codemachineHere(scene.place, ['change', '--dry-run', '-C', 'nowhere', 'add a limit'])
  expect(elsewhere).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('is not a directory; name an existing one'),
  })
})
