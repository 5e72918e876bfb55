import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { agentAlone } from '../../src/cli/commands/agent.ts'
import type { RunFlags } from '../../src/cli/flags.ts'
import type { ScriptStep } from '../../src/demo/model/reply.ts'
import { message, reply, shell } from '../../src/demo/model/reply.ts'
import { cliContext } from '../support/cli-context.ts'
import type { TestPlace } from '../support/place.ts'
import { processesOf } from '../support/processes.ts'
import { IMPATIENT, openScene, type Scene } from '../support/scene.ts'
import { writePeer } from '../support/scripted-peer.ts'

interface Called {
  exitCode: number | string
  /** How a person mends what was refused. */
  hint: string | null
  stdout: string
  stderr: string
  /** The records of all calls, the oldest first. */
  records: Record<string, unknown>[]
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
  return { exitCode, hint, stdout: textOf(stdout), stderr: textOf(stderr), records: await recordsOf(place) }
}

async function recordsOf(place: TestPlace): Promise<Record<string, unknown>[]> {
  const state = join(place.home, '.codemachine', 'state')
  const [key] = await readdir(state).catch(() => [])
  if (key === undefined) return []
  const folder = join(state, key, 'agents')
  const names = (await readdir(folder).catch(() => [])).sort()
  return Promise.all(names.map(async name => JSON.parse(await readFile(join(folder, name), 'utf8'))))
}

/** A project; codex's home is codemachine's own, or the person's. */
async function openProject(steps: readonly ScriptStep[], home: 'codemachine' | 'own' = 'codemachine'): Promise<Scene> {
  const scene = await openScene([steps], { provider: IMPATIENT, person: `codex_home = "${home}"\n` })
  const own = ownHome(scene.place)
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'config.toml'), scene.model.codexConfig('scripted', IMPATIENT))
  await mkdir(join(scene.place.directory, '.codemachine'))
  await mkdir(join(scene.place.directory, 'src'))
  return scene
}

const ownHome = (place: TestPlace) => join(place.home, '.codemachine', 'codex')
const final = (text: string) => reply(message(text, { phase: 'final_answer' }))

test('an agent works by its profile and its prompt, and its result is printed, recorded and remembered', async () => {
  await using scene = await openProject([
    reply(message('I look.'), shell('echo hello > made.txt')),
    final('All done.\n\nIt works.'),
  ])
  const { place, model } = scene
  const profile = join(ownHome(place), 'backend-dev.config.toml')
  await writeFile(profile, 'developer_instructions = "Be kind."\n')
  const called = await callAgent(place, { cwd: join(place.directory, 'src'), flags: { model: 'gpt-9' } })
  expect(called).toMatchObject({ exitCode: 0, stdout: 'All done.\n\nIt works.\n', stderr: '' })
  const [request] = model.requests
  expect(request).toMatchObject({ model: 'gpt-9', effort: 'high' })
  // A call beside it may be for another one.
  expect(await readFile(profile, 'utf8')).not.toContain('gpt-9')
  expect(request?.developerTexts.join()).toContain('Be kind.')
  expect(request?.userTexts.at(-1)).toMatch(/\n\nUser Request:\nDo the thing$/)
  expect(await readFile(join(place.directory, 'made.txt'), 'utf8')).toBe('hello\n')
  expect(called.records).toMatchObject([
    {
      agent: 'backend-dev',
      state: 'completed',
      request: 'Do the thing',
      exitCode: 0,
      result: 'All done.\n\nIt works.',
    },
  ])
  expect(called.records[0]?.instance).toMatch(/^backend-dev-\d{8}T\d{9}$/)
  expect(await readFile(join(place.directory, '.codemachine/memory/.backend-memory.md'), 'utf8')).toContain('It works.')
  expect(processesOf(place)).toEqual([])
})

test('with --stream, what codex shows is shown from after the request; nothing is written into the person’s home of codex', async () => {
  await using scene = await openProject(
    [
      reply(message('I look.'), shell('echo hello; echo "by $CODEMACHINE_AGENTS"; echo tooth-fairy; echo molar-bear')),
      final('All done.'),
    ],
    'own',
  )
  const config = await readFile(join(scene.place.codexHome, 'config.toml'), 'utf8')
  const env = { CODEMACHINE_AGENTS: 'qa-engineer', DEPLOY_TOKEN: 'tooth-fairy\nmolar-bear' }
  const { exitCode, stdout, stderr } = await callAgent(scene.place, { stream: true, task: 'Do\r\nit', env })
  expect(exitCode).toBe(0)
  expect(stdout).not.toContain('User Request')
  expect(stdout).toMatch(
    /^codex\nI look\.\n[\s\S]*^hello\nby qa-engineer\/backend-dev\n\[secret DEPLOY_TOKEN\]\n[\s\S]*^All done\.\n/m,
  )
  expect(stdout.match(/All done/g)).toHaveLength(1)
  expect(stderr).toBe(
    "Codex does not know which models the provider scripted offers; the agents use codex's default, scripted, and not gpt-5-codex.\n",
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
  expect(called.records).toMatchObject([{ state: 'terminated', exitCode: 143, result: null }])
  expect(processesOf(scene.place)).toEqual([])
})

test('a turn that fails is told in codex’s words, exit code 4, and a record whose codemachine has died reads as terminated', async () => {
  await using scene = await openProject([
    () => {
      throw new Error('no such model')
    },
  ])
  const { place } = scene
  const first = await callAgent(place, {})
  expect(first.exitCode).toBe('4: backend-dev did not get its task done: scripted model: no such model.')
  expect(first.records).toMatchObject([{ state: 'error', exitCode: 1, result: 'scripted model: no such model' }])
  const [record] = first.records
  const folder = join(scene.records(), 'agents')
  const dead = { ...record, instance: 'qa-engineer-20260101T000000000', state: 'running', pid: 1, startTime: '1' }
  await writeFile(join(folder, `${dead.instance}.json`), JSON.stringify(dead))
  await writeFile(join(folder, `${dead.instance}.last`), 'what nobody has redacted')
  const unfinished = join(folder, `${dead.instance}.json.x.tmp`)
  await writeFile(unfinished, 'half of')
  await utimes(unfinished, new Date(0), new Date(0))
  const task = `${'long '.repeat(40_000)}end`
  const second = await callAgent(place, { task })
  expect(scene.model.requests.at(-1)?.userTexts.at(-1)?.endsWith(task)).toBe(true)
  expect(second.records.find(({ instance }) => instance === dead.instance)).toMatchObject({ state: 'terminated' })
})

test('where nobody is logged in nothing is started, and both that and a 401 of codex tell the way to a login', async () => {
  await using scene = await openProject([])
  const { place } = scene
  const bin = join(place.root, 'codex')
  const peer = await writePeer(
    place.root,
    `on['account/read'] = id => send({ id, result: { account: null, requiresOpenaiAuth: true } })
    on['model/list'] = id => send({ id, result: { data: [] } })`,
  )
  const refused = 'ERROR: unexpected status 401 Unauthorized: Missing bearer'
  await writeFile(
    bin,
    `#!/bin/sh\ncase "$*" in --version) echo codex-cli 0.169.0;; *app-server*) exec ${peer};; *) echo "${refused}" >&2; exit 1;; esac\n`,
    { mode: 0o700 },
  )
  const call = { flags: { codexBin: bin } }
  const out = await callAgent(place, call)
  expect(out).toMatchObject({
    exitCode: '4: Codex is not logged in, so no agent can work.',
    hint: 'Log in: codemachine login',
    records: [],
  })
  const withKey = await callAgent(place, { ...call, env: { CODEX_API_KEY: 'sk-none' } })
  expect(withKey).toMatchObject({
    exitCode: expect.stringMatching(/^4: .* status 401 /),
    hint: 'Log in: codemachine login',
  })
})

test.each([
  ['itself', 'backend-dev', 'waits for this itself'],
  ['more than two others', 'qa-engineer/uxui-designer', 'at most 2 deep'],
])('an agent that is asked for by %s is refused', async (_, waiting, said) => {
  await using scene = await openProject([])
  const { exitCode, records } = await callAgent(scene.place, { env: { CODEMACHINE_AGENTS: waiting } })
  expect(exitCode).toMatch(/^4: /)
  expect(exitCode).toContain(said)
  expect(records).toEqual([])
})

test.each<[string, Call, string]>([
  ['an unknown agent', { agent: 'frontend-def' }, 'frontend-dev'],
  ['no task', { task: ' ' }, 'The prompt is empty'],
  ['a task of more than 1 MiB', { task: 'x'.repeat(1_048_577) }, 'may have at most'],
  ['a directory that is not there', { flags: { cd: '/nowhere' } }, '/nowhere is not a directory'],
  ['a directory in no project', { flags: { cd: '/' } }, '/ is in no project'],
])('%s is refused before anything starts', async (_, call, said) => {
  await using scene = await openProject([])
  const { exitCode, records } = await callAgent(scene.place, call)
  expect(exitCode).toMatch(/^2: /)
  expect(exitCode).toContain(said)
  expect(records).toEqual([])
})
