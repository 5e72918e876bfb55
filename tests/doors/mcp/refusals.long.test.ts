import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { isAlive } from '../../../src/platform/processes.ts'
import { git } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { held, round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { callBare, openClient } from './mcp-client.ts'

promise('O124', 'Files are rewound and worktrees landed over MCP only with `--allow-write`')
test('files are rewound and worktrees landed only where the server was started with --allow-write', async () => {
  await using scene = await openScene([round('echo one > app.txt')])
  const { place } = scene
  await scene.run('--rounds', '1', 'build X')
  const worktree = join(place.root, 'work.worktrees', 'x')
  git(place, 'worktree', 'add', '-q', '-b', 'codemachine/x', worktree)
  writeFileSync(join(worktree, 'new.txt'), 'new\n')
  await using careful = await openClient(place)
  expect((await careful.call('rewind', { to: 'start' })).problem).toBe(
    'rewind changes files, and this server was started without --allow-write.',
  )
  expect((await careful.call('land')).hint).toBe('A person starts it with codemachine mcp --allow-write.')
  await using client = await openClient(place, { args: ['--allow-write'] })
  const { value: kept } = await client.call('savepoints')
  const [first] = kept.savepoints
  const dry = await client.call('rewind', { to: first?.id, dry_run: true })
  expect(dry.value).toMatchObject({ to: first?.id, files: 1, undo: null })
  expect(readFileSync(join(place.directory, 'app.txt'), 'utf8')).toBe('one\n')
  expect((await client.call('rewind', { to: first?.id })).value).toMatchObject({ files: 1, undo: 'before-rewind-1' })
  expect(() => readFileSync(join(place.directory, 'app.txt'))).toThrow('ENOENT')
  expect((await client.call('land')).problem).toContain('has uncommitted changes')
  const landed = await client.call('land', { commit: 'New', message: 'Use it' })
  expect(landed.value.words[0]).toMatch(/^codemachine\/x is merged into main as/)
  expect(readFileSync(join(place.directory, 'new.txt'), 'utf8')).toBe('new\n')
})

promise(
  'O127',
  'The MCP server ends with its input, and with SIGTERM, in the middle of a wait too; what runs goes on; what it verifies ends',
)
test('the end of its input ends the server, in the middle of a wait too, and so does SIGTERM; what runs goes on', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), says('Over.')]])
  await using client = await openClient(scene.place)
  const { value: started } = await client.call('start_session', { goal: 'build X', limits: { rounds: 1 } })
  for (const end of ['input', 'SIGTERM'] as const) {
    const wait = { name: 'wait_for', arguments: {}, _meta: { progressToken: 'waits' } }
    const { process: server, closed } = await callBare(scene.place, wait, line => line.includes('"waits"'))
    if (end === 'input') server.stdin.end()
    else server.kill(end)
    expect(await closed).toEqual([0, null])
  }
  expect(await isAlive(started.pid, process.platform)).toBe(true)
  gate.resolve()
  expect((await client.until({ session: started.session })).happened).toBe('ended')
})
