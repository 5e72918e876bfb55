import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { SessionState } from '../../../src/core/state/state.ts'
import type { Script, ScriptStep } from '../../../src/demo/model/reply.ts'
import { message, reply, shell } from '../../../src/demo/model/reply.ts'
import { agentAlone } from '../../../src/doors/cli/commands/agent.ts'
import type { RunFlags } from '../../../src/doors/cli/flags.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { readSessions } from '../../../src/session/records/journal.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { readRunLock } from '../../../src/session/records/run-lock.ts'
import { cliContext } from '../../support/cli-context.ts'
import { codemachineHere } from '../../support/in-process.ts'
import type { TestPlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { IMPATIENT, openRealScene, type RealScene } from '../../support/real-scene.ts'
import { status, tooManyRequests } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { isLinux, unless } from '../../support/skipped.ts'
import { endUndying, leavesUndying } from '../../support/undying.ts'

interface Called {
  exitCode: number | string
  /** How a person mends what was refused. */
  hint: string | null
  stdout: string
  stderr: string
  /** The sessions of all calls, the oldest first. */
  sessions: SessionState[]
}

interface Call {
  agent?: string
  task?: string
  stream?: boolean
  flags?: RunFlags
  signal?: AbortSignal
  env?: Record<string, string>
  cwd?: string
}

async function callAgent(place: TestPlace, call: Call): Promise<Called> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const { cwd = place.directory, signal = new AbortController().signal } = call
  const context = cliContext(place, { env: { ...place.env, ...call.env }, cwd, stdout, stderr, signal })
  const { agent = 'backend-dev', task = 'Do the thing', stream = false, flags = {} } = call
  let hint: string | null = null
  const exitCode = await agentAlone(context, { agent, task, stream, flags }).catch(
    (error: Error & { exitCode?: number; hint?: string }) => {
      hint = error.hint ?? null
      return `${error.exitCode}: ${error.message}`
    },
  )
  const textOf = (written: PassThrough) => String(written.read() ?? '')
  return { exitCode, hint, stdout: textOf(stdout), stderr: textOf(stderr), sessions: await sessionsOf(place) }
}

const recordsOf = ({ directory, env, home }: TestPlace) =>
  openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })

async function sessionsOf(place: TestPlace): Promise<SessionState[]> {
  const { sessions, problems } = await readSessions(await recordsOf(place))
  expect(problems).toEqual([])
  return sessions
}

/** A project; codex's home is codemachine's own, or the person's. */
async function openProject(
  steps: readonly ScriptStep[] | Script,
  home: 'codemachine' | 'own' = 'codemachine',
): Promise<RealScene> {
  const scene = await openRealScene(typeof steps === 'function' ? steps : [steps], {
    provider: IMPATIENT,
    person: `codex_home = "${home}"\n`,
  })
  const own = ownHome(scene.place)
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'config.toml'), scene.model.codexConfig('scripted', IMPATIENT))
  await mkdir(join(scene.place.directory, '.codemachine'))
  await mkdir(join(scene.place.directory, 'src'))
  return scene
}

const ownHome = (place: TestPlace) => join(place.home, '.codemachine', 'codex')
const final = (text: string) => reply(message(text, { phase: 'final_answer' }))

promise('O9', 'An agent is called by itself, and its answer is printed, recorded and remembered')
test('an agent works by its profile and its prompt, and its result is printed, recorded and remembered', async () => {
  await using scene = await openProject([
    reply(message('I look.'), shell('echo hello > made.txt')),
    // What it says after its answer is none.
    reply(message('All done.\n\nIt works.', { phase: 'final_answer' }), message('Bye.', { phase: 'commentary' })),
  ])
  const { place, model } = scene
  const profile = join(ownHome(place), 'backend-dev.config.toml')
  await writeFile(profile, 'developer_instructions = "Be kind."\nmodel_reasoning_summary = "detailed"\n')
  const called = await callAgent(place, { cwd: join(place.directory, 'src'), flags: { model: 'gpt-9' } })
  expect(called).toMatchObject({ exitCode: 0, stdout: 'All done.\n\nIt works.\n', stderr: '' })
  const [request] = model.requests
  expect(request).toMatchObject({
    model: 'gpt-9',
    effort: 'high',
    body: { reasoning: { summary: 'detailed' } },
  })
  // A call beside it may be for another one.
  expect(await readFile(profile, 'utf8')).not.toContain('gpt-9')
  expect(request?.developerTexts.join()).toContain('Be kind.')
  expect(request?.userTexts.at(-1)).toBe('User Request:\nDo the thing')
  expect(request?.developerTexts.join()).toContain('.codemachine/memory/.backend-memory.md')
  expect(await readFile(join(place.directory, 'made.txt'), 'utf8')).toBe('hello\n')
  expect(called.sessions).toMatchObject([
    {
      template: 'agent',
      goal: 'Do the thing',
      work: { stoppedFor: null },
      limits: { rounds: 1 },
      roundsUsed: 1,
      ended: { outcome: { kind: 'answered' }, exitCode: 0 },
    },
  ])
  expect(await readFile(join(place.directory, '.codemachine/memory/.backend-memory.md'), 'utf8')).toContain('It works.')
  expect(processesOf(place)).toEqual([])
  // One that cannot be read has nothing begin.
  await writeFile(profile, 'developer_instructions = \n')
  const refused = await callAgent(place, {})
  expect([refused.exitCode, refused.sessions.length]).toEqual([expect.stringContaining(`2: ${profile}:1`), 1])
})

test('with --stream, what codex shows is shown from after the request; nothing is written into the person’s home of codex', async () => {
  await using scene = await openProject(
    [
      reply(
        message('I look.'),
        shell('echo hello; echo "by $CODEMACHINE_AGENTS"; echo tooth-fairy; echo molar-bear; printf end'),
      ),
      final('All done.'),
    ],
    'own',
  )
  const config = await readFile(join(scene.place.codexHome, 'config.toml'), 'utf8')
  const env = {
    CODEMACHINE_AGENTS: 'qa-engineer',
    DEPLOY_TOKEN: 'tooth-fairy\nmolar-bear',
    API_TOKEN: 'hunter2hunter2',
  }
  const task = 'Do\r\nit with hunter2hunter2'
  const { exitCode, stdout, stderr } = await callAgent(scene.place, { stream: true, task, env })
  const memory = await readFile(join(scene.place.directory, '.codemachine/memory/.backend-memory.md'), 'utf8')
  expect(memory).toContain('it with [secret API_TOKEN]')
  expect(exitCode).toBe(0)
  expect(stdout).not.toContain('User Request')
  expect(stdout).toMatch(
    /^I look\.\n\$ .*echo hello; .*\nhello\nby qa-engineer\/backend-dev\n\[secret DEPLOY_TOKEN\]\nend\nAll done\.\n$/,
  )
  expect(stdout.match(/All done/g)).toHaveLength(1)
  expect(stderr).toBe(
    "Codex does not know which models the provider scripted offers; the agents use codex's default, scripted instead of gpt-5-codex.\n",
  )
  expect(scene.model.requests[0]).toMatchObject({ model: 'scripted', effort: 'high' })
  expect(await readFile(join(scene.place.codexHome, 'config.toml'), 'utf8')).toBe(config)
  for (const home of [scene.place.codexHome, ownHome(scene.place)])
    expect((await readdir(home)).filter(name => name.endsWith('.config.toml'))).toEqual([])
})

test('SIGTERM ends the agent and all that it has started, and says so in the record', async () => {
  const ending = new AbortController()
  await using scene = await openProject([
    reply(shell('sleep 1000 & setsid sleep 1001 & wait', { yieldMs: 250 })),
    () => {
      ending.abort('SIGTERM')
      return new Promise(() => {})
    },
  ])
  const called = await callAgent(scene.place, { signal: ending.signal, flags: { yolo: true } })
  expect(called).toMatchObject({ exitCode: 143, stdout: '' })
  expect(called.sessions).toMatchObject([{ ended: { outcome: { kind: 'interrupted', by: 'SIGTERM' }, exitCode: 143 } }])
  expect(processesOf(scene.place)).toEqual([])
})

test('a turn that fails is told at once, in codex’s words and with exit code 4', async () => {
  await using scene = await openProject([
    () => {
      throw new Error('no such model')
    },
  ])
  const { place } = scene
  const first = await callAgent(place, {})
  expect(first.exitCode).toMatch(/^4: backend-dev did not finish its task: .*scripted model: no such model/)
  expect(first.sessions).toMatchObject([
    {
      roundsUsed: 1,
      ended: { outcome: { kind: 'needs-person', reason: expect.stringContaining('no such model'), hint: null } },
    },
  ])
  const task = `${'long '.repeat(40_000)}end`
  await callAgent(place, { task })
  expect(scene.model.requests.at(-1)?.userTexts.at(-1)?.endsWith(task)).toBe(true)
})

test('where a key is not taken, the way to a login is told; sandbox and -c of the call are those of codex', async () => {
  await using scene = await openProject([status(401, 'who are you')])
  const { exitCode, hint } = await callAgent(scene.place, {
    flags: { sandbox: 'read-only', config: ['model_reasoning_summary="concise"'] },
  })
  expect(scene.model.requests[0]).toMatchObject({ body: { reasoning: { summary: 'concise' } } })
  expect([exitCode, hint]).toEqual([expect.stringMatching(/^4: .*401/), 'Log in: codemachine login'])
  expect(scene.model.requests[0]?.developerTexts.join()).toMatch(/The writable root is `[^`]*\/\.codemachine`/)
})

test('where the server refuses access (403), what to look at is told, and why it is not waited for longer', async () => {
  await using scene = await openProject(() => status(403))
  const { place } = scene
  const advice =
    'The server refused access (HTTP 403). Check if the account, its rights, and a proxy or VPN let codex in.'
  const atOnce = await callAgent(place, {})
  expect([atOnce.exitCode, atOnce.hint]).toEqual([expect.stringMatching(/^4: .*403 Forbidden/), advice])
  const waits = await callAgent(place, { flags: { maxWait: '3s' } })
  expect(waits.stderr).toMatch(/^waiting until .* \(the server refused access \(403\): /m)
  expect(waits.hint).toMatch(/^It has failed since .*, and the next try would come later than --max-wait allows\. /)
  expect(waits.hint?.endsWith(advice)).toBe(true)
})

test('where credit is used up, or codex is not configured rightly, what to mend is told', async () => {
  let fault = status(402)
  await using scene = await openProject(() => fault)
  const unpaid = await callAgent(scene.place, {})
  expect([unpaid.exitCode, unpaid.hint]).toEqual([
    expect.stringMatching(/^4: .*402/),
    'Add credit, or use another account.',
  ])
  fault = status(404, { error: { code: 'model_not_found', message: 'The model `scripted` does not exist' } })
  const unknown = await callAgent(scene.place, {})
  expect([unknown.exitCode, unknown.hint]).toEqual([
    expect.stringMatching(/^4: .*does not exist/),
    'Fix the codex configuration (codemachine doctor checks it).',
  ])
})

promise('M17', 'A limit of cost holds for an agent that is called by itself')
test('a limit of cost holds for an agent by itself: it is refused without a price, and charged with one', async () => {
  const usage = { input: 1_000_000, cachedInput: 0, output: 100_000, reasoning: 0 }
  await using scene = await openProject([{ ...reply(shell('true')), usage }, final('Stopped.')])
  const { place } = scene
  const without = await callAgent(place, { flags: { maxCost: '2' } })
  expect([without.exitCode, without.sessions]).toEqual([
    expect.stringContaining('2: Your settings have no prices, so --max-cost cannot be enforced.'),
    [],
  ])
  const config = join(place.home, '.config', 'codemachine', 'config.toml')
  await writeFile(config, 'codex_home = "codemachine"\n[prices.scripted]\nin = 2\nout = 10\n')
  const other = await callAgent(place, { flags: { maxCost: '2', model: 'other' } })
  expect([other.exitCode, other.sessions]).toEqual([expect.stringContaining('2: The model other has no price'), []])
  const { sessions } = await callAgent(place, { flags: { maxCost: '2', model: 'scripted' } })
  expect(sessions).toMatchObject([{ limits: { cost: 2 }, prices: [{ model: 'scripted' }] }])
  expect(sessions[0]?.cost.amount).toBeGreaterThanOrEqual(3)
  const journal = await readFile((await recordsOf(place)).journal(sessions[0]?.id ?? ''), 'utf8')
  expect(journal).toContain('"type":"winding-down"')
})

promise('B30')
test.runIf(isLinux)(
  `what an agent by itself left running and cannot be ended is told on stderr${unless(isLinux, 'marks are found by /proc here')}`,
  async () => {
    const pidFile = join(await mkdtemp(join(tmpdir(), 'codemachine-undying-')), 'pid')
    await using scene = await openProject([reply(shell(leavesUndying(pidFile))), final('All done.')])
    try {
      const { exitCode, stderr } = await callAgent(scene.place, { flags: { yolo: true } })
      expect([exitCode, stderr]).toEqual([
        0,
        expect.stringMatching(/^A round left processes running that codemachine cannot end: .*sleep 1000 \(\d+\)/m),
      ])
    } finally {
      await endUndying(pidFile)
      await rm(dirname(pidFile), { recursive: true })
    }
  },
)

test('a server that has no room is told at once, for somebody waits for the answer', async () => {
  await using scene = await openProject([tooManyRequests()])
  const { exitCode, stdout, sessions } = await callAgent(scene.place, {})
  expect([exitCode, stdout]).toEqual([expect.stringMatching(/^4: backend-dev did not finish its task: .*429/), ''])
  expect(sessions).toMatchObject([{ waiting: null, ended: { outcome: { kind: 'needs-person', hint: null } } }])
})

test('a network that is away is told at once, though codex would wait for it for ever', async () => {
  await using scene = await openProject([final('All done.')])
  await scene.model.goAway()
  const { exitCode, stdout, stderr, sessions } = await callAgent(scene.place, {})
  expect([exitCode, stdout]).toEqual([
    expect.stringMatching(/^4: backend-dev did not finish its task: No network: codex cannot reach its/),
    '',
  ])
  expect(stderr).not.toContain('keeps trying')
  expect(sessions).toMatchObject([{ waiting: null, ended: { outcome: { kind: 'needs-person', hint: null } } }])
  await scene.model.comeBack()
})

test('with --max-wait a network that is away is waited for so long, and stderr says so', async () => {
  await using scene = await openProject([final('All done.')])
  await scene.model.goAway()
  const gone = await callAgent(scene.place, { flags: { maxWait: '1s' } })
  expect(gone.exitCode).toMatch(/^4: .*No network/)
  expect(gone.hint).toMatch(/^It would have to wait until .* \d\d:\d\d, longer than --max-wait allows\.$/)
  expect(gone.stderr).toContain('the network is down; codex keeps trying\n')
  await scene.model.comeBack()
})

promise(
  'W41',
  'A call of an agent that waits says how long at most and what ends it, and names no command that does not reach it',
)
test('a wait says how long a call waits at most and what ends it, and the end that --max-wait allows no other', async () => {
  await using scene = await openProject(() => tooManyRequests())
  // The second wait, of at least 2 s after one of at least 1 s, would be over too late.
  const { exitCode, hint, stderr, sessions } = await callAgent(scene.place, { flags: { maxWait: '3s' } })
  expect(exitCode).toMatch(/^4: .*429/)
  expect(hint).toMatch(
    /^It has failed since \S+ \d\d:\d\d, and the next try would come later than --max-wait allows\.$/,
  )
  expect(stderr).toMatch(/^waiting until .*\); its waits may take 3 s in total \(--max-wait\); Ctrl\+C ends it$/m)
  expect(sessions).toMatchObject([{ ended: { outcome: { kind: 'needs-person', hint: null } } }])
})

test('calls work side by side, each in a session of its own, and none of them is that of the directory', async () => {
  const go = Promise.withResolvers<void>()
  const both = Promise.withResolvers<void>()
  let asked = 0
  await using scene = await openProject(async ({ userTexts }) => {
    asked += 1
    if (asked === 2) both.resolve()
    await go.promise
    return final(`Did it: ${userTexts.at(-1)}`)
  })
  const { place } = scene
  const here = (...args: string[]) => codemachineHere(place, args)
  const calls = [callAgent(place, { task: 'one' }), callAgent(place, { agent: 'qa-engineer', task: 'two' })]
  await both.promise
  const { lock } = await recordsOf(place)
  expect(await readRunLock(lock, process.platform)).toEqual({ state: 'free' })
  const listed = async () => JSON.parse((await here('list', '--json')).stdout)
  const working = await listed()
  expect(working).toMatchObject([
    { template: 'agent', standing: 'running', activity: 'running' },
    { template: 'agent', standing: 'running', activity: 'running' },
  ])
  expect(JSON.parse((await here('status', '--json')).stdout)).toMatchObject({ runner: null, session: null })
  go.resolve()
  const [one, two] = await Promise.all(calls)
  expect([one?.stdout, two?.stdout]).toEqual(['Did it: User Request:\none\n', 'Did it: User Request:\ntwo\n'])
  expect(await listed()).toMatchObject([{ outcome: { kind: 'answered' } }, { outcome: { kind: 'answered' } }])
  expect((await here('list')).stdout).toMatch(/^\S+_1 .* answered .* agent: (one|two)\n\S+_2 .* answered .* agent: /)
  const [{ id }] = working
  expect(JSON.parse((await here('report', id, '--json')).stdout)).toMatchObject({
    template: 'agent',
    outcome: { kind: 'answered' },
    exitCode: 0,
  })
  const { stdout: report } = await here('report', id, '--md')
  expect(report).toMatch(/changes not checked yet/i)
  expect(report).toContain('Nothing is proved.')
  expect(report).not.toMatch(/codemachine (resume|review|rewind)/)
  expect((await here('logs', id)).stdout).toContain('answered')
  expect((await here('status')).stdout).toContain('No sessions yet.')
  for (const [args, said] of [
    [['resume'], 'No session'],
    [['resume', id], `${id} is an agent call, which cannot be resumed`],
    [['report'], 'has only calls of agents'],
    [['verify'], 'No session'],
  ] as const)
    expect(await here(...args)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(said),
    })
})

promise('E6', 'An agent works by itself')
test('a call that was killed is cut off, and the next one ends what it has left', async () => {
  await using scene = await openProject([
    reply(shell('setsid sleep 1000 & wait', { yieldMs: 250 })),
    () => {
      calling.process.kill('SIGKILL')
      return new Promise(() => {})
    },
  ])
  const { place } = scene
  const calling = scene.start('--agent', 'backend-dev', '--yolo', 'Do the thing')
  await calling.ended
  const listed = await codemachineHere(place, ['list', '--json'])
  expect(JSON.parse(listed.stdout)).toMatchObject([{ template: 'agent', standing: 'cut-off' }])
  expect((await codemachineHere(place, ['resume'])).stderr).toMatch(/No session in .* can be resumed/)
  const next = await callAgent(place, { signal: AbortSignal.abort('SIGINT') })
  expect([next.exitCode, next.stderr]).toEqual([130, expect.stringContaining('Ended what an earlier run had left')])
  expect(processesOf(place)).toEqual([])
})

test('where nobody is logged in nothing is started, and the way to a login is told', async () => {
  await using scene = await openProject([])
  const { place } = scene
  const bin = join(place.root, 'codex')
  const peer = await writePeer(
    place.root,
    `on['account/read'] = id => send({ id, result: { account: null, requiresOpenaiAuth: true } })
    on['model/list'] = id => send({ id, result: { data: [] } })`,
  )
  await writeFile(bin, `#!/bin/sh\ncase "$*" in --version) echo codex-cli 0.169.0;; *) exec ${peer};; esac\n`, {
    mode: 0o700,
  })
  const out = await callAgent(place, { flags: { codexBin: bin } })
  expect(out).toMatchObject({
    exitCode: '4: Codex is not logged in, so no agent can work.',
    hint: 'Log in: codemachine login',
    sessions: [],
  })
})

test.each([
  ['itself', 'backend-dev', 'waits for this itself'],
  ['more than two others', 'qa-engineer/uxui-designer', 'at most 2 deep'],
])('an agent that is asked for by %s is refused', async (_, waiting, said) => {
  await using scene = await openProject([])
  const { exitCode, sessions } = await callAgent(scene.place, { env: { CODEMACHINE_AGENTS: waiting } })
  expect(exitCode).toMatch(/^4: /)
  expect(exitCode).toContain(said)
  expect(sessions).toEqual([])
})

test.each<[string, Call, string]>([
  ['an unknown agent', { agent: 'frontend-def' }, 'frontend-dev'],
  ['no task', { task: ' ' }, 'The prompt is empty'],
  ['a task of more than 1 MiB', { task: 'x'.repeat(1_048_577) }, 'may have at most'],
  ['a directory that is not there', { flags: { cd: '/nowhere' } }, '/nowhere is not a directory'],
  ['a directory in no project', { flags: { cd: '/' } }, '/ is in no project'],
])('%s is refused before anything starts', async (_, call, said) => {
  await using scene = await openProject([])
  const { exitCode, sessions } = await callAgent(scene.place, call)
  expect(exitCode).toMatch(/^2: /)
  expect(exitCode).toContain(said)
  expect(sessions).toEqual([])
})
