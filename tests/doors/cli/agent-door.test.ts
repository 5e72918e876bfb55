import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { AgentRequest } from '../../../src/agents/inbox.ts'
import { fillPrompt } from '../../../src/agents/prompts.ts'
import { loadPrompt } from '../../../src/base/package.ts'
import type { EngineEvent } from '../../../src/core/engine.ts'
import { message, reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { CodexEngine } from '../../../src/engines/codex/engine.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { MARK_VARIABLE, makeMark } from '../../../src/platform/end-processes.ts'
import type { RunRequest } from '../../../src/project/agent-door/agent-inbox.ts'
import { serveInbox } from '../../../src/project/agent-door/agent-inbox.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { endAfterEach } from '../../engines/codex/end-after-each.ts'
import { THREAD } from '../../engines/codex/open-engine.ts'
import { setupIn } from '../../engines/contract.ts'
import { BIN } from '../../support/codemachine.ts'
import { startInProcess } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { TestClock } from '../../support/test-clock.ts'

const atEnd = endAfterEach()
let clock: TestClock
let place: TestPlace
beforeEach(async () => {
  clock = new TestClock()
  place = atEnd.use(await makePlace(''))
})

/** A session in the place that does what it is asked by `run`; answers what it was asked. */
async function session(run: RunRequest = async () => ({ text: 'Made a page.', success: true }), inPlace = place) {
  const { env, home, directory } = inPlace
  const { platform, pid } = process
  const records = await openRecords({ directory, env, home, platform, templates: OWN_TEMPLATES })
  atEnd.use(await takeRunLock(records.lock, { platform, pid, now: new Date() }))
  const asked: AgentRequest[] = []
  const doIt: RunRequest = (request, over, feed, isOutside) => {
    asked.push(request)
    return run(request, over, feed, isOutside)
  }
  atEnd.use(await serveInbox({ directory: records.directory, run: doIt, clock }))
  return { asked, records }
}

const door = (args: readonly string[], more: { env?: Record<string, string>; input?: string; tty?: boolean } = {}) =>
  startInProcess(place, args, { clock, ...more })

describe('codemachine --agent where a session runs', () => {
  test('prints the result that the session has for it', async () => {
    const { asked } = await session()
    expect(await door(['--agent', 'frontend-dev', 'T1: a page']).ended).toMatchObject({
      exitCode: 0,
      stdout: 'Made a page.\n',
      stderr: '',
    })
    expect(asked).toEqual([{ agent: 'frontend-dev', task: 'T1: a page', paths: null, thread: null, stream: false }])
  })

  test('reads the task from its input, knows folders from where it is typed, and codex’s thread', async () => {
    const { asked } = await session()
    await mkdir(join(place.directory, 'web', 'src'), { recursive: true })
    const args = ['-C', 'web', '--agent', 'qa-engineer', '--path', 'src', '--path', '.', '-']
    const env = { CODEX_THREAD_ID: 'thread-1' }
    expect((await door(args, { input: 'T2: try it\n', env }).ended).exitCode).toBe(0)
    expect(asked).toEqual([
      { agent: 'qa-engineer', task: 'T2: try it', paths: ['web/src', 'web'], thread: 'thread-1', stream: false },
    ])
  })

  test('with --stream shows what the agent says, and that once', async () => {
    await session(async (_, _over, { text }) => {
      text('I look. ')
      text('Made a page.')
      return { text: 'Made a page.', success: true }
    })
    expect((await door(['--stream', '--agent', 'frontend-dev', 'T1']).ended).stdout).toBe('I look. Made a page.\n')
  })

  test('with --stream shows the result where nothing was heard before it', async () => {
    await session()
    expect((await door(['--stream', '--agent', 'frontend-dev', 'T1']).ended).stdout).toBe('Made a page.\n')
  })

  test.each([
    [{ text: 'The task names no task of the plan.', success: false }, 4],
    [{ text: 'It went wrong.', success: false, status: 'error' }, 4],
    [{ text: 'The round has ended.', success: false, status: 'terminated' }, 143],
  ] as const)('says why there is no result: %j', async (answer, exitCode) => {
    await session(async () => answer)
    expect(await door(['--agent', 'frontend-dev', 'T1']).ended).toMatchObject({
      exitCode,
      stdout: '',
      stderr: `codemachine: ${answer.text}\n`,
    })
  })

  test('ends what it has asked for when it is told to end', async () => {
    const begun = Promise.withResolvers<void>()
    await session(async (_, over) => {
      begun.resolve()
      await new Promise(resolve => over.addEventListener('abort', resolve))
      return { text: 'It was ended.', success: false }
    })
    const asking = door(['--agent', 'frontend-dev', 'T1'])
    await begun.promise
    asking.signal('SIGINT')
    expect(await asking.ended).toMatchObject({ exitCode: 130, stdout: '' })
  })

  test('shows a person nothing that would steer the terminal', async () => {
    await session(async () => ({ text: '\u001b]0;title\u0007Made.', success: true }))
    const { stdout } = await door(['--agent', 'frontend-dev', 'T1'], { tty: true }).ended
    expect(stdout).toBe('␛]0;title␇Made.\n')
  })

  test('says on stderr for whom the agent waits', async () => {
    await session(async (_, __, { waits }) => {
      waits(['backend-dev'])
      await vi.waitFor(() => expect(asking.stderr()).toBe('frontend-dev waits for backend-dev.\n'), { timeout: 10_000 })
      return { text: 'Made.', success: true }
    })
    const asking = door(['--agent', 'frontend-dev', 'T1'])
    expect(await asking.ended).toMatchObject({ exitCode: 0, stdout: 'Made.\n' })
  })

  test('says soon that a session whose process is gone has gone', async () => {
    const { env, home, directory } = place
    const { platform, pid } = process
    const records = await openRecords({ directory, env, home, platform, templates: OWN_TEMPLATES })
    const lock = await takeRunLock(records.lock, { platform, pid, now: new Date() })
    await mkdir(join(directory, '.codemachine'))
    const asking = door(['--agent', 'frontend-dev', 'T1'])
    await clock.nextWait(400)
    await lock[Symbol.asyncDispose]()
    const since = clock.monotonic()
    await clock.advance(2000)
    expect(await asking.ended).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('accepted the task') })
    expect(clock.monotonic() - since).toBeLessThan(10_000)
  })

  test('gives up after a quarter of a minute if the session takes nothing', async () => {
    const { env, home, directory } = place
    const { platform, pid } = process
    const records = await openRecords({ directory, env, home, platform, templates: OWN_TEMPLATES })
    atEnd.use(await takeRunLock(records.lock, { platform, pid, now: new Date() }))
    await mkdir(join(directory, '.codemachine'))
    const asking = door(['--agent', 'frontend-dev', 'T1'])
    await clock.nextWait(400)
    await clock.advance(16_000)
    expect(await asking.ended).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('accepted the task') })
  })

  test('refuses flags that say how an agent works by itself, and asks nobody', async () => {
    const { asked } = await session()
    const { exitCode, stderr } = await door(['--agent', 'frontend-dev', '--yolo', '-m', 'gpt-9', 'T1']).ended
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('leave --model, --yolo out')])
    const other = await door(['--agent', 'frontend-dev', '--provider', 'local', 'T1']).ended
    expect([other.exitCode, other.stderr]).toEqual([2, expect.stringContaining('leave --provider out')])
    expect(asked).toEqual([])
  })

  test('works by itself where only the lock of a session that has died is there', async () => {
    const { env, home, directory } = place
    const { platform, pid } = process
    const records = await openRecords({ directory, env, home, platform, templates: OWN_TEMPLATES })
    await using _lock = await takeRunLock(records.lock, { platform, pid, now: new Date() })
    const held = await readFile(records.lock, 'utf8')
    await writeFile(records.lock, held.replaceAll(`${pid}`, '999999999'))
    await mkdir(join(directory, '.codemachine'))
    const asking = door(['--agent', 'frontend-dev', 'T1'], { env: { CODEX_THREAD_ID: 'mine', CODEX_BIN: '/nowhere' } })
    await clock.nextWait(400)
    await clock.advance(16_000)
    expect((await asking.ended).stderr).toMatch(/works by itself[\s\S]*\/nowhere/)
  })

  test('knows the session that has started it by its mark, where the records cannot be seen', async () => {
    const { records } = await session()
    const mark = makeMark({ key: records.key, owner: { pid: 1, startTime: null }, n: 1 })
    const env = { CODEMACHINE_HOME: join(place.root, 'elsewhere'), [MARK_VARIABLE]: mark }
    expect(await door(['--agent', 'frontend-dev', 'T1'], { env }).ended).toMatchObject({ exitCode: 0 })
  })
})

describe('codemachine --agent is refused', () => {
  test('with the nearest name for an agent that there is not, before anything else', async () => {
    await rm(place.directory, { recursive: true })
    const { exitCode, stderr } = await door(['--agent', 'fronted-dev', '-C', '/nowhere', '']).ended
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('did you mean "frontend-dev"?')])
  })

  test.each([
    ['', 'empty'],
    ['x'.repeat(262_145), '256 KiB'],
  ])('without a task that can be one: %.10s', async (task, why) => {
    const { exitCode, stderr } = await door(['--agent', 'frontend-dev', '-'], { input: task }).ended
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)])
  })

  test('outside of any project, of which the records of another person are none', async () => {
    await mkdir(join(place.directory, '..', '.codemachine', 'state'), { recursive: true })
    const { exitCode, stderr } = await door(['--agent', 'frontend-dev', 'T1']).ended
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('.codemachine')])
  })

  test('for a folder outside of the project', async () => {
    await session()
    const { exitCode, stderr } = await door(['--agent', 'frontend-dev', '--path', '../home', 'T1']).ended
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('is not in')])
  })
})

/** Plays one round of the real codex in the place, in workspace-write without a network; answers what its commands said. */
async function playRound(where: TestPlace, records: Records): Promise<string[]> {
  const engine = new CodexEngine(await setupIn(where, { key: records.key }))
  atEnd.defer(() => engine.close())
  const events: EngineEvent[] = []
  const nothing = () => {}
  const onEvent = (event: EngineEvent) => void events.push(event)
  await engine.prepare(THREAD).run({ round: 1, input: 'Go on.', onEvent, onLive: nothing, onRecord: nothing })
  return events.flatMap(event =>
    event.type === 'item-completed' && event.item.kind === 'command' ? [JSON.stringify(event.item)] : [],
  )
}

test('an agent asks the session from inside codex’s sandbox, without a network, and the session knows its thread', async () => {
  const line = `"${process.execPath}" "${BIN}" --agent frontend-dev --stream "T1: a page"; echo "exit code $?"`
  const script = roundsScript([[reply(shell(line, { yieldMs: 30_000 })), reply(message('Done.'))]])
  const model = atEnd.use(await startScriptedModel({ script }))
  const where = atEnd.use(await makePlace(model.codexConfig('scripted')))
  const { asked, records } = await session(async (_, _over, { text }) => {
    text('A page is made. ')
    return { text: 'Done.', success: true }
  }, where)
  const [said] = await playRound(where, records)
  expect(said).toContain('A page is made. \\nexit code 0')
  expect(asked).toEqual([
    expect.objectContaining({
      agent: 'frontend-dev',
      task: 'T1: a page',
      thread: expect.stringMatching(/^[\da-f-]{36}$/),
    }),
  ])
})

promise(
  'O134',
  'The first command of a round reaches the door by the absolute path that the prompt names, under a slow profile that sets `PATH`',
)
test('the first command of a round finds the door by the path that the prompt names, under a profile that takes 2 s and sets PATH', async () => {
  const prompt = fillPrompt(loadPrompt('templates/build'), { directory: '/', main: 'MAIN.md', team: [] })
  const named = /use its absolute path: `(.+?) --agent frontend-dev/.exec(prompt)?.[1] ?? ''
  expect(named).toContain(BIN)
  const line = `codemachine --agent frontend-dev "T1: no"; echo "by name $?"; ${named} --agent frontend-dev "T1: a page"; echo "exit code $?"`
  const script = roundsScript([[reply(shell(line, { yieldMs: 30_000 })), reply(message('Done.'))]])
  const model = atEnd.use(await startScriptedModel({ script }))
  const where = atEnd.use(await makePlace(model.codexConfig('scripted')))
  for (const name of ['.profile', '.bash_profile'])
    await writeFile(join(where.home, name), 'sleep 2\nexport PATH=/usr/bin:/bin\n')
  const { asked, records } = await session(async () => ({ text: 'Done.', success: true }), where)
  const [said] = await playRound(where, records)
  expect(said).toContain('by name 127')
  expect(said).toContain('exit code 0')
  expect(asked).toMatchObject([{ agent: 'frontend-dev', task: 'T1: a page' }])
})
