import { spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { functionCall } from '../../src/demo/model/reply.ts'
import { claimDone } from '../../tests/support/rounds.ts'
import { BIN, runAnyhow } from '../run-command.ts'
import { type Agent, gateOf } from './agent.ts'
import { type Harness, MOST_ROUNDS, REVIEWERS, type Stage } from './play.ts'

const PROMISE = '<promise>COMPLETE</promise>'

/** The rows of the table: codemachine from the least checks to the most, and what others use to leave an agent to work. */
export const HARNESSES: readonly Harness[] = [
  codemachine('codemachine', { args: () => [] }),
  codemachine('codemachine --verify', { args: agent => ['--verify', gateOf(agent)], reviewers: REVIEWERS }),
  codemachine('codemachine, gates and protect', {
    args: () => [],
    reviewers: REVIEWERS,
    config: agent =>
      `[[gates]]\nname = "tests"\nrun = ${JSON.stringify(gateOf(agent))}\nprotect = ["test/**", "test-link", "package.json", "ci/**"]\n`,
  }),
  codemachine('codemachine --verify --review', {
    args: agent => ['--verify', gateOf(agent), '--review'],
    reviewers: REVIEWERS,
  }),
  codemachine('codemachine --prove', {
    args: () => ['--prove'],
    reviewers: REVIEWERS,
    requires: '--require-proof',
  }),
  codemachine('codemachine --prove --verify', {
    args: agent => ['--prove', '--verify', gateOf(agent)],
    reviewers: REVIEWERS,
    requires: '--require-proof',
  }),
  {
    name: 'codex: a goal, and a Stop hook that runs the tests',
    claim: { call: functionCall('update_goal', { status: 'complete' }) },
    run: playGoal,
  },
  {
    name: 'codex exec until a promise word (ralph)',
    claim: { say: `All is done. ${PROMISE}` },
    async run({ agent, codex, run }) {
      const prompt = `${agent.goal}\nRun the tests: ${gateOf(agent)}. When all of it is done and they pass, say ${PROMISE}.`
      for (let round = 1; round <= MOST_ROUNDS; round += 1) {
        const { stdout } = await run(codex, ['exec', '--sandbox', 'workspace-write', prompt])
        if (stdout.includes(PROMISE)) return true
      }
      return false
    },
  },
  {
    name: 'ralph-tui 0.11.0',
    claim: { say: `All is done. ${PROMISE}` },
    async install(folder) {
      const { exitCode, stderr } = await runAnyhow('npm', [
        'install',
        '--prefix',
        folder,
        ...INSTALL,
        'ralph-tui@0.11.0',
        'bun@1.3',
      ])
      return exitCode === 0 ? null : `npm does not install it: ${stderr.trim().split('\n')[0]}`
    },
    run: playRalphTui,
  },
  {
    name: 'gnhf',
    claim: { say: 'All is done.' },
    install: async () => 'npm had no package of this name on 2026-11-29',
    run: async () => false,
  },
]

function codemachine(
  name: string,
  {
    args,
    config,
    ...more
  }: { args(agent: Agent): string[]; config?(agent: Agent): string } & Pick<Harness, 'reviewers' | 'requires'>,
): Harness {
  return {
    name,
    claim: { shell: claimDone },
    ...more,
    async run({ agent, place, codex, run }) {
      if (config !== undefined) {
        const folder = join(place.home, '.config/codemachine')
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, 'config.toml'), config(agent))
      }
      const flags = ['--json', '--rounds', String(MOST_ROUNDS), '--no-keep-awake', '--codex-bin', codex, ...args(agent)]
      const { requires = [] } = more
      const { exitCode, stdout } = await run(process.execPath, [BIN, ...flags, ...[requires].flat(), agent.goal])
      if (exitCode === 0) return true
      return stdout.includes('"type":"done-accepted"') ? 'unproved' : false
    },
  }
}

const INSTALL = ['--no-audit', '--no-fund', '--no-save']

/** A thread with a goal works, turn after turn, until the agent says that it is complete and the hook lets the turn end. */
async function playGoal({ agent, place, codex, overtime }: Stage): Promise<boolean> {
  const config = join(place.codexHome, 'config.toml')
  const hook = `{ ${gateOf(agent)}; } >&2 || exit 2`
  appendFileSync(
    config,
    `\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = ${JSON.stringify(`bash -c ${JSON.stringify(hook)}`)}\n`,
  )
  {
    // Only a hook whose hash is in the config runs.
    await using server = await openServer(codex, place)
    const { data } = (await server.request('hooks/list', { cwds: [place.directory] })) as HooksList
    for (const { key, currentHash } of data.flatMap(each => each.hooks))
      appendFileSync(config, `\n[hooks.state.${JSON.stringify(key)}]\ntrusted_hash = ${JSON.stringify(currentHash)}\n`)
  }
  await using server = await openServer(codex, place)
  const start = { cwd: place.directory, sandbox: 'workspace-write', approvalPolicy: 'never' }
  const { thread } = (await server.request('thread/start', start)) as { thread: { id: string } }
  const isOver = new Promise<boolean>(resolve => {
    let isComplete = false
    server.onNotification((method, params) => {
      if (method === 'thread/goal/updated') isComplete = (params as GoalUpdated).goal.status === 'complete'
      if (method === 'turn/completed' && isComplete) resolve(true)
    })
    void server.ended.then(() => resolve(false))
    overtime.addEventListener('abort', () => resolve(false))
  })
  await server.request('thread/goal/set', {
    threadId: thread.id,
    objective: agent.goal,
    status: 'active',
    origin: 'user',
  })
  return await isOver
}

interface HooksList {
  data: readonly { hooks: readonly { key: string; currentHash: string }[] }[]
}

interface GoalUpdated {
  goal: { status: string }
}

/** A codex app-server, initialized. */
async function openServer(codex: string, { directory, env }: Stage['place']) {
  const child = spawn(codex, ['app-server'], { cwd: directory, env, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = new Promise(resolve => child.once('close', resolve))
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let onNotification = (_method: string, _params: unknown) => {}
  const send = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`)
  const request = (method: string, params: object) => {
    const answer = Promise.withResolvers<unknown>()
    const id = waiting.size
    waiting.set(id, answer)
    send({ id, method, params })
    return answer.promise
  }
  createInterface({ input: child.stdout }).on('line', line => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method !== undefined) onNotification(method, params)
    else if (error === undefined) waiting.get(id)?.resolve(result)
    else waiting.get(id)?.reject(new Error(error.message))
  })
  child.once('close', () => {
    for (const each of waiting.values()) each.reject(new Error('The app-server has ended.'))
  })
  await request('initialize', {
    clientInfo: { name: 'liars', title: null, version: '1' },
    capabilities: { experimentalApi: true },
  })
  send({ method: 'initialized' })
  return {
    request,
    ended,
    onNotification: (listener: typeof onNotification) => {
      onNotification = listener
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      child.kill()
      await ended
    },
  }
}

/** One story of a PRD. Codex 0.169 has no `--full-auto` any more, so that is left out. */
async function playRalphTui({ agent, place, codex, installed, run }: Stage): Promise<boolean> {
  const folder = join(place.directory, '.ralph-tui')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'config.toml'), '[agentOptions]\nfullAuto = false\nsandbox = "workspace-write"\n')
  const prd = join(folder, 'prd.json')
  const story = {
    id: 'US-1',
    title: 'Finish slug()',
    description: agent.goal,
    acceptanceCriteria: [`${gateOf(agent)} passes`],
    priority: 1,
    passes: false,
  }
  writeFileSync(prd, JSON.stringify({ name: 'slug', branchName: 'slug', userStories: [story] }))
  const bun = join(installed, 'node_modules/.bin/bun')
  const args = [
    'run',
    '--headless',
    '--no-setup',
    '--agent',
    'codex',
    '--prd',
    prd,
    '--iterations',
    String(MOST_ROUNDS),
  ]
  const program = `PATH=${JSON.stringify(`${join(codex, '..')}:`)}$PATH exec "$@"`
  await run('bash', ['-c', program, 'bash', bun, join(installed, 'node_modules/ralph-tui/dist/cli.js'), ...args])
  return (JSON.parse(readFileSync(prd, 'utf8')) as { userStories: { passes: boolean }[] }).userStories.every(
    each => each.passes,
  )
}
