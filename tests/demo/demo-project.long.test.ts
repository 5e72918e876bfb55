import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { startScriptedModel } from '../../src/demo/model/scripted-model.ts'
import { createDemoRepository, demoGoal, demoScript } from '../../src/demo/project.ts'
import { withPaths } from '../../src/session/proof/review-input.ts'
import { parseMainFile, withoutClaim } from '../../src/workspace/memory/main-file.ts'
import type { SessionFolder } from '../../src/workspace/memory/memory-paths.ts'
import { createSessionFolder } from '../../src/workspace/memory/session-folder.ts'
import { parseTasksFile } from '../../src/workspace/memory/tasks-file.ts'
import { type PlayedTurn, startCodex } from './codex-client.ts'

/** What a round left behind. */
interface PlayedRound extends PlayedTurn {
  changedTree: boolean
  claimed: boolean
  open: readonly string[]
  tasksLeft: number
}

let root = ''
let directory = ''
let rounds: PlayedRound[] = []
const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'demo-project-'))
  directory = join(root, 'linkcheck')
  await createDemoRepository(directory, env)
  const git = { commit: null, branch: 'main' }
  const place = await createSessionFolder({
    directory,
    id: '20261120_1',
    goal: demoGoal,
    git,
    records: root,
    redact: text => text,
  })
  await using model = await startScriptedModel({ script: demoScript('instant') })
  for (let round = 0; round < 5; round++) {
    await using codex = await startCodex(model, { directory })
    rounds = [...rounds, await playRound(codex, place)]
  }
})

afterAll(() => rm(root, { recursive: true, force: true }))

async function playRound(codex: Awaited<ReturnType<typeof startCodex>>, place: SessionFolder): Promise<PlayedRound> {
  const developerInstructions = withPaths(loadPrompt('goal'), { directory, memory: place })
  const before = await treeState()
  const thread = await codex.startThread({ developerInstructions })
  const turn = await codex.playTurn(thread, 'Go on with the goal.')
  const changedTree = (await treeState()) !== before
  const text = await readFile(place.main, 'utf8')
  const main = parseMainFile(text)
  const tasks = parseTasksFile(await readFile(place.tasks, 'utf8'))
  if (!main.ok) throw new Error(main.problem)
  if (!tasks.ok) throw new Error(tasks.problem)
  const withdrawn = withoutClaim(text)
  if (withdrawn.ok) await writeFile(place.main, withdrawn.value)
  const tasksLeft = tasks.value.filter(task => !task.done).length
  return { ...turn, changedTree, claimed: main.value.finiteIncantatem, open: main.value.open, tasksLeft }
}

async function treeState(): Promise<string> {
  return `${await run('git', 'rev-parse', 'HEAD')}${await run('git', 'status', '--porcelain')}`
}

async function run(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd: directory, env })
  return stdout
}

test('every round ends as it should, with text, thoughts and commands to watch', () => {
  for (const round of rounds) {
    expect(round.error).toBeNull()
    expect(round.status).toBe('completed')
    expect(round.items.map(item => item.type)).toEqual(expect.arrayContaining(['agentMessage', 'commandExecution']))
  }
  const seen = new Set(rounds.flatMap(round => round.notifications.map(one => one.method)))
  expect([...seen]).toEqual(
    expect.arrayContaining(['turn/plan/updated', 'item/reasoning/summaryTextDelta', 'item/agentMessage/delta']),
  )
})

test('the only commands that fail are the tests that show a defect before it is mended', () => {
  const failures = rounds.map(round =>
    round.items
      .filter(item => item.type === 'commandExecution' && item.status !== 'completed')
      .map(item => item.command),
  )
  expect(failures.map(commands => commands.length)).toEqual([0, 2, 0, 1, 0])
})

test('the tasks are done when the third round ends, and every claim before the last comes from a round that changed files', () => {
  expect(rounds.map(({ tasksLeft, claimed, changedTree }) => ({ tasksLeft, claimed, changedTree }))).toEqual([
    { tasksLeft: 4, claimed: false, changedTree: true },
    { tasksLeft: 2, claimed: false, changedTree: true },
    { tasksLeft: 0, claimed: false, changedTree: true },
    { tasksLeft: 0, claimed: true, changedTree: true },
    { tasksLeft: 0, claimed: true, changedTree: false },
  ])
  expect(rounds.map(round => round.open.length)).toEqual([4, 2, 0, 0, 0])
})

test('the project that was built works: its tests pass, its history is told in commits, its tree is clean', async () => {
  expect(await run('node', '--test')).toMatch(/# fail 0|ℹ fail 0/)
  expect(await run('node', 'bin/linkcheck.js', 'README.md', 'IDEA.md')).toBe('No broken links.\n')
  expect((await run('git', 'log', '--format=%s')).trim().split('\n')).toHaveLength(5)
  expect(await run('git', 'status', '--porcelain')).toBe('')
})
