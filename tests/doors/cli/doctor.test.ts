import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { roundsScript } from '../../../src/demo/model/reply.ts'
import { makeMark } from '../../../src/platform/end-processes.ts'
import { isAlive, loadOfMachine } from '../../../src/platform/processes.ts'
import { judgeSpace } from '../../../src/project/doctor/checks.ts'
import type { Finding } from '../../../src/tell/words/doctor.ts'
import { codemachine, startCodemachine } from '../../support/codemachine.ts'
import { codemachineHere, startInProcess } from '../../support/in-process.ts'
import { withOlderBubblewrap } from '../../support/older-bubblewrap.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { type ScriptedModel, startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { unless } from '../../support/skipped.ts'
import { TestClock } from '../../support/test-clock.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

let model: ScriptedModel
beforeAll(async () => {
  model = await startScriptedModel({ script: roundsScript([]) })
})
afterAll(() => model[Symbol.asyncDispose]())

/** A place whose codex is in order, with a temporary directory of its own. */
async function goodPlace(config = model.codexConfig('scripted'), options: { git?: boolean } = {}): Promise<TestPlace> {
  const place = await makePlace(config, options)
  place.env.TMPDIR = join(place.root, 'tmp')
  await mkdir(place.env.TMPDIR)
  return place
}

async function examine(
  place: TestPlace,
  args: readonly string[] = [],
  env: Record<string, string> = {},
  through: readonly string[] = [],
): Promise<{ exitCode: number | null; findings: Finding[]; of(check: Finding['check']): Finding[] }> {
  const asked = ['doctor', '--json', ...args]
  // As another user, it is a process of its own.
  const ended =
    through.length > 0
      ? codemachine(place, asked, { env, through })
      : codemachineHere(place, asked, { env, load: loadOfMachine() })
  const { exitCode, stdout, stderr } = await ended
  // On a machine that is busy it may say that there is no answer yet.
  expect(stderr.replaceAll(/^[a-z-]+: no answer yet after \d+ s; still waiting\.\n/gm, '')).toBe('')
  const findings: Finding[] = JSON.parse(stdout)
  return { exitCode, findings, of: check => findings.filter(finding => finding.check === check) }
}

async function script(place: TestPlace, text: string): Promise<string> {
  const path = join(place.root, 'codex-script')
  await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return path
}

/** Doctor, on a clock of its own, with a git that says nothing before it is released. */
async function hangingGit(place: TestPlace, { load = 0 } = {}) {
  // Not below /tmp: where agents can write no program is looked for.
  const bin = await mkdtemp('/var/tmp/codemachine-bin-')
  const go = join(bin, 'go')
  const git = execFileSync('/bin/sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const waits = `until [ -e ${go} ]; do sleep 0.05; done`
  await writeFile(join(bin, 'git'), `#!/bin/sh\n${waits}\nexec ${git} "$@"\n`, { mode: 0o755 })
  const clock = new TestClock()
  const env = { PATH: `${bin}${delimiter}${place.env.PATH}` }
  const running = startInProcess(place, ['doctor', '--json'], { clock, env, load })
  return {
    clock,
    ended: running.ended,
    release: () => writeFile(go, ''),
    /** Waits until it has said that, with so much of its time going by between two looks, ms. */
    async says(words: RegExp, ms = 0) {
      for (; !words.test(running.stderr()); await running.alive()) await clock.advance(ms)
    },
    async [Symbol.asyncDispose]() {
      await writeFile(go, '')
      await running[Symbol.asyncDispose]()
      await rm(bin, { recursive: true })
    },
  }
}

/** The two pids that a script writes down, once it has. */
function pidsIn(pidFile: string): Promise<number[]> {
  return untilInFolder(dirname(pidFile), 'two pids', async () => {
    const lines = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n')
    return lines.length === 3 ? lines.slice(0, 2).map(Number) : null
  })
}

/** Which of the processes live whose pids a script wrote down. */
async function stillAlive(pidFile: string): Promise<number[]> {
  const pids = await pidsIn(pidFile)
  const alive = await Promise.all(pids.map(pid => isAlive(pid, process.platform)))
  return pids.filter((_, index) => alive[index])
}

/** Lets a scripted peer pass for a codex. */
const VERSION = `if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }`

/** Runs a command without a sandbox. */
const LEAKING = `import { execFileSync } from 'node:child_process'
  on['command/exec'] = (id, { command, cwd }) => {
    execFileSync(command[0], command.slice(1), { cwd })
    send({ id, result: { exitCode: 0, stdout: '', stderr: '' } })
  }`

/** What a command is started through so that modes of files hold for it, for root too; null: root is free of them here. */
const boundByModes = (() => {
  const withoutRight = ['setpriv', '--bounding-set', '-dac_override']
  if (process.getuid?.() !== 0) return []
  return spawnSync('setpriv', [...withoutRight.slice(1), 'true']).status === 0 ? withoutRight : null
})()

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ status }) => status === 'problem')

describe.concurrent('codemachine doctor', () => {
  test('finds nothing to mend where all is there', async () => {
    await using place = await goodPlace()
    const { exitCode, findings, of } = await examine(place)
    expect(problemsOf(findings)).toEqual([])
    expect(exitCode).toBe(0)
    expect([...new Set(findings.map(({ check }) => check))].sort()).toEqual(
      'codex,codex-config,codex-home,directory,disk,git,leftovers,login,model,node,records,sandbox,settings'.split(','),
    )
    expect(of('model')[0]?.message).toBe('scripted')
    expect(of('git')[1]?.message).toContain('commits by A Person <person@example.org>')
    expect(of('sandbox').at(-1)).toMatchObject({ status: 'ok', mend: null })
  })

  test('changes nothing: not the configuration, not the work directory, not the records, and leaves no thread', async () => {
    const config = `${model.codexConfig('scripted')}\n# mine\n`
    await using place = await goodPlace(config)
    const seen = await readdir(place.directory)
    await examine(place)
    expect(await readFile(join(place.codexHome, 'config.toml'), 'utf8')).toBe(config)
    expect(await readdir(place.directory)).toEqual(seen)
    expect(
      execFileSync('git', ['status', '--porcelain', '--ignored'], { cwd: place.directory, env: place.env }).toString(),
    ).toBe('')
    expect(await readdir(place.home)).toEqual([])
    expect(await readdir(place.codexHome)).not.toContain('sessions')
    expect(await readdir(join(place.root, 'tmp'))).toEqual([])
  })

  test('tells it line by line, each that is not ok with its mend, in colour where that is wanted', async () => {
    await using place = await goodPlace('')
    const plain = await codemachine(place, ['doctor'])
    expect(plain.exitCode).toBe(4)
    expect(plain.stdout).toMatch(/^ok {7}node {10}Node \d+/)
    expect(plain.stdout).toMatch(/^ok {7}node {10}runs (?:keep this machine awake|cannot block sleep)/m)
    expect(plain.stdout).toMatch(/\nproblem {2}login {9}codex is not logged in\. \(CM0302\)\n {23}→ Log in: .*login\n/)
    expect(plain.stdout).toContain('codemachine cannot work here until 1 problem is fixed')
    const coloured = await codemachine(place, ['doctor'], { env: { NO_COLOR: '', FORCE_COLOR: '1' } })
    expect(coloured.stdout).toContain('\u001b[31mproblem')
  })

  test('says who is not logged in how to do it, and believes an API key', async () => {
    await using place = await goodPlace(model.codexConfig('scripted', { requires_openai_auth: true }))
    const without = await examine(place)
    expect(problemsOf(without.findings)).toMatchObject([
      { check: 'login', code: 'CM0302', mend: expect.stringMatching(/codemachine login$/) },
    ])
    expect(without.exitCode).toBe(4)
    const auth = { auth_mode: 'apikey', OPENAI_API_KEY: 'sk-nobody' }
    await writeFile(join(place.codexHome, 'auth.json'), JSON.stringify(auth), { mode: 0o600 })
    const { of } = await examine(place)
    expect(of('login')).toMatchObject([{ status: 'ok', message: 'logged in with an API key' }])
  })

  test("tells what is wrong in a broken config.toml in codex's own words, and leaves the file as it is", async () => {
    await using place = await goodPlace('model = = 3\n')
    const { exitCode, findings } = await examine(place)
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toMatchObject([
      {
        check: 'codex-config',
        message: expect.stringContaining('config.toml:1:9: extra `=`'),
        mend: expect.stringContaining(place.codexHome),
      },
    ])
    expect(await readFile(join(place.codexHome, 'config.toml'), 'utf8')).toBe('model = = 3\n')
  })

  test('passes on what codex warns of, and lets it work', async () => {
    await using place = await goodPlace(
      model.codexConfig('scripted').replace('[features]', '[features]\nnonsense = true'),
    )
    const { exitCode, of } = await examine(place)
    expect(exitCode).toBe(0)
    expect(of('codex-config')).toMatchObject([
      { status: 'warning', message: expect.stringContaining('features.nonsense') },
    ])
  })

  test('looks at a codex that has no home yet without making one', async () => {
    await using place = await goodPlace()
    const { findings, of } = await examine(place, [], { CODEX_HOME: '' })
    expect(of('codex-home')).toMatchObject([{ status: 'warning', message: expect.stringContaining('.codex yet') }])
    expect(problemsOf(findings)).toMatchObject([{ check: 'login' }])
    expect(await readdir(place.home)).toEqual([])
  })

  test('says which codex it was told of is not there', async () => {
    await using place = await goodPlace()
    const { exitCode, findings } = await examine(place, [], { CODEX_BIN: '/nowhere/codex' })
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toMatchObject([
      {
        check: 'codex',
        message: expect.stringContaining('CODEX_BIN names /nowhere/codex'),
        mend: 'Correct CODEX_BIN or leave it out.',
      },
    ])
  })

  test('with nothing on the PATH git is missed, and codex taken from node_modules', async () => {
    await using place = await goodPlace()
    const { findings, of } = await examine(place, [], { PATH: '' })
    expect(problemsOf(findings)).toMatchObject([{ check: 'git', mend: expect.stringMatching(/^Install git/) }])
    expect(of('codex')[0]?.message).toContain('from node_modules')
  })

  test('refuses a codex that is too old, and says how to update it', async () => {
    await using place = await goodPlace()
    const old = await script(place, 'echo codex-cli 0.50.0')
    const { exitCode, findings } = await examine(place, ['--codex-bin', old])
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toMatchObject([
      {
        check: 'codex',
        message: expect.stringContaining('is codex 0.50.0'),
        mend: expect.stringContaining('npm install --global'),
      },
    ])
  })

  test('warns of a codex whose rounds can remove nothing by force', async () => {
    await using place = await goodPlace()
    const peer = await writePeer(place.root, `${VERSION.replace('0.169.0', '0.160.0')}\n${LEAKING}`)
    const { of } = await examine(place, ['--codex-bin', peer])
    expect(of('codex')[1]).toMatchObject({ status: 'warning', message: expect.stringContaining('rm -rf') })
  })

  test('says when the sandbox cannot be used here, and what to do in a container', async () => {
    await using place = await goodPlace()
    const refusing = `on['command/exec'] = id => send({ id, result: { exitCode: 1, stdout: '', stderr: 'bwrap: No permissions to create new namespace' } })`
    const peer = await writePeer(place.root, `${VERSION}\n${refusing}`)
    const { exitCode, findings } = await examine(place, ['--codex-bin', peer])
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toMatchObject([
      {
        check: 'sandbox',
        message: expect.stringContaining('No permissions'),
        mend: expect.stringContaining('danger-full-access'),
      },
    ])
    const { of } = await examine(place, ['--codex-bin', peer], { CODEMACHINE_SANDBOX: 'danger-full-access' })
    expect(of('sandbox')).toMatchObject([{ status: 'ok' }])
  })

  promise('D74')
  test('names the fix if an older bubblewrap finds no helper, as codex has no folder of its own', async () => {
    await using place = await goodPlace()
    await using older = await withOlderBubblewrap(place)
    const home = join(place.root, 'new-home')
    await mkdir(home)
    const { of } = await examine(place, [], { ...older.env, HOME: home, CODEX_HOME: '' })
    expect(of('sandbox')).toEqual([
      {
        check: 'sandbox',
        status: 'problem',
        message: expect.stringContaining('bwrap: execvp codex-linux-sandbox'),
        mend: expect.stringMatching(/^Log in, .* update bubblewrap to 0\.9 or newer\.$/),
        code: 'CM0308',
      },
    ])
    expect((await examine(place, [], older.env)).of('sandbox')).toMatchObject([{ status: 'ok' }])
  })

  test('tries the sandbox in the work directory itself, and names what is in its way there', async () => {
    await using place = await goodPlace()
    await symlink('nowhere', join(place.directory, '.agents'))
    const { exitCode, findings } = await examine(place)
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toEqual([
      {
        check: 'sandbox',
        status: 'problem',
        message: `Codex's sandbox starts no command here: .agents in ${place.directory} is a link, which it cannot protect.`,
        code: 'CM0308',
        mend: `Remove it, or replace it by its target (${join(place.directory, 'nowhere')}).`,
      },
    ])
  })

  test('takes a sandbox for a sandbox in a work directory that holds all others too', async () => {
    await using place = await goodPlace()
    const { of } = await examine(place, ['-C', place.root])
    expect(of('sandbox').at(-1)).toMatchObject({ status: 'ok' })
    expect(of('records')).toMatchObject([{ status: 'warning', message: expect.stringContaining('prove nothing') }])
  })

  test('leaves nothing in the work directory of a sandbox that codex ends only with itself', async () => {
    await using place = await goodPlace()
    const late = `
import { mkdirSync, writeFileSync } from 'node:fs'
on['command/exec'] = (id, { cwd }) => {
  if (cwd !== ${JSON.stringify(place.directory)}) writeFileSync(cwd + '/written', '')
  send({ id, result: { exitCode: 0, stdout: '', stderr: '' } })
}
on.end = () => { mkdirSync(${JSON.stringify(join(place.directory, '.agents'))}); process.exit(0) }`
    const peer = await writePeer(place.root, `${VERSION}\n${late}`)
    const before = await readdir(place.directory)
    const { of } = await examine(place, ['--codex-bin', peer])
    expect(of('sandbox')).toMatchObject([{ status: 'ok' }])
    expect(await readdir(place.directory)).toEqual(before)
  })

  test('says when the sandbox does not work', async () => {
    await using place = await goodPlace()
    const peer = await writePeer(place.root, `${VERSION}\n${LEAKING}`)
    const { findings } = await examine(place, ['--codex-bin', peer])
    expect(problemsOf(findings)).toMatchObject([
      { check: 'sandbox', message: expect.stringContaining('does not work') },
    ])
  })

  test('ends within 15 s when codex hangs, and ends it', async () => {
    await using place = await goodPlace()
    const pidFile = join(place.root, 'pid')
    const hanging = await script(
      place,
      `if [ "$1" = --version ]; then echo codex-cli 0.169.0; exit; fi\ntrap '' TERM\necho $$ > ${pidFile}\nsleep 600 &\necho $! >> ${pidFile}\nwait`,
    )
    const clock = new TestClock()
    const started = clock.monotonic()
    await using running = startInProcess(place, ['doctor', '--json', '--codex-bin', hanging], { clock })
    await pidsIn(pidFile)
    await clock.advance(started + 15_000 - clock.monotonic())
    const { exitCode, stdout } = await running.ended
    expect(exitCode).toBe(4)
    // What is looked at beside it may not have come to its end in so short a time.
    const of = (JSON.parse(stdout) as Finding[]).filter(({ check }) => check === 'codex')
    expect(problemsOf(of)).toMatchObject([{ message: expect.stringContaining('did not answer initialize') }])
    expect(await stillAlive(pidFile)).toEqual([])
  })

  test('says that git has no answer yet, and finds nothing wrong once it has one', async () => {
    await using place = await goodPlace()
    await using hanging = await hangingGit(place)
    await hanging.says(/^git: no answer yet after 3 s; still waiting\.$/m)
    await hanging.release()
    const { exitCode, stdout } = await hanging.ended
    expect([exitCode, problemsOf(JSON.parse(stdout))]).toEqual([0, []])
  })

  test('waits longer on a busy machine, and calls a git that hangs a problem at last', async () => {
    await using place = await goodPlace()
    await using hanging = await hangingGit(place, { load: 2 })
    await hanging.says(/^git: no answer yet after 9 s; still waiting\.$/m, 500)
    await hanging.clock.advance(3_000)
    const { exitCode, stdout } = await hanging.ended
    const ofGit = (JSON.parse(stdout) as Finding[]).filter(({ check }) => check === 'git')
    expect([exitCode, ofGit]).toEqual([
      4,
      [expect.objectContaining({ check: 'git', message: 'No answer within 12 s.' })],
    ])
  })

  test('ends at once when the person has enough, with what it started', async () => {
    await using place = await goodPlace()
    const pidFile = join(place.root, 'pid')
    const hanging = await script(place, `echo $$ > ${pidFile}\nsleep 600 &\necho $! >> ${pidFile}\nwait`)
    await using running = startCodemachine(place, ['doctor', '--codex-bin', hanging])
    await pidsIn(pidFile)
    process.kill(running.pid, 'SIGINT')
    expect((await running.ended).exitCode).toBe(130)
    expect(await stillAlive(pidFile)).toEqual([])
  })

  test('needs a work directory that is there', async () => {
    await using place = await goodPlace()
    const absent = await examine(place, ['-C', 'nowhere'])
    expect(absent.exitCode).toBe(4)
    expect(problemsOf(absent.findings)).toMatchObject([
      { check: 'directory', message: expect.stringContaining('There is no ') },
    ])
    const file = await examine(place, ['-C', 'README.md'])
    expect(problemsOf(file.findings)).toMatchObject([
      { check: 'directory', message: expect.stringContaining('is not a directory') },
    ])
  })

  const writable = `needs a work directory that can be written to${unless(boundByModes !== null, 'root can write to all')}`
  test.skipIf(boundByModes === null)(writable, async () => {
    await using place = await goodPlace()
    const closed = join(place.root, 'closed')
    await mkdir(closed, { mode: 0o500 })
    const { findings } = await examine(place, ['-C', closed], {}, boundByModes ?? [])
    expect(problemsOf(findings)).toMatchObject([
      { check: 'directory', message: expect.stringContaining('cannot be written to') },
    ])
  })

  test('works without a git repository, and says what that means', async () => {
    await using place = await goodPlace(undefined, { git: false })
    const { exitCode, of } = await examine(place, [], { GIT_CEILING_DIRECTORIES: place.root })
    expect(exitCode).toBe(0)
    expect(of('git')[1]).toMatchObject({ status: 'warning', mend: expect.stringContaining('git init') })
  })

  test('warns where git knows nobody who could commit', async () => {
    await using place = await goodPlace()
    for (const key of ['name', 'email'])
      execFileSync('git', ['config', '--unset', `user.${key}`], { cwd: place.directory, env: place.env })
    execFileSync('git', ['config', 'user.useConfigOnly', 'true'], { cwd: place.directory, env: place.env })
    const { exitCode, of } = await examine(place)
    expect(exitCode).toBe(0)
    expect(of('git')[1]).toMatchObject({ status: 'warning', mend: expect.stringContaining('user.email') })
  })

  test('names file, line and mend of a mistake in the settings, and goes on', async () => {
    await using place = await goodPlace()
    await writeFile(join(place.directory, 'codemachine.toml'), '# ours\nrouds = 3\n')
    const { exitCode, findings, of } = await examine(place)
    expect(exitCode).toBe(4)
    expect(problemsOf(findings)).toEqual([
      {
        check: 'settings',
        status: 'problem',
        message: 'codemachine.toml:2: rouds is an unknown key.',
        code: 'CM0202',
        mend: 'Did you mean "rounds"?',
      },
    ])
    expect(of('login')).toHaveLength(1)
    await writeFile(join(place.directory, 'codemachine.toml'), '# ours\nrounds = 3\n')
    expect((await examine(place)).of('settings')).toMatchObject([
      { status: 'ok', message: 'rounds from codemachine.toml:2' },
    ])
  })

  test('says where the records cannot be kept, and where others could look into them', async () => {
    await using place = await goodPlace()
    const file = await examine(place, [], { CODEMACHINE_HOME: join(place.directory, 'README.md') })
    expect(problemsOf(file.findings)).toMatchObject([
      { check: 'records', mend: expect.stringContaining('CODEMACHINE_HOME') },
    ])
    const inside = await examine(place, [], { CODEMACHINE_HOME: join(place.directory, 'records') })
    expect(inside.of('records')).toMatchObject([
      { status: 'warning', message: expect.stringContaining('prove nothing') },
    ])
    const state = join(place.home, '.codemachine', 'state')
    await mkdir(state, { recursive: true, mode: 0o755 })
    expect((await examine(place)).of('records')).toMatchObject([
      { status: 'warning', mend: `Close it: chmod 700 ${state}` },
    ])
  })

  test('counts what a run that has died left running', async () => {
    await using place = await goodPlace()
    const owner = { pid: 2_000_000_000, startTime: '1' }
    const mark = makeMark({ key: 'elsewhere-0123456789ab', owner, n: 0 })
    const left = spawn('sleep', ['60'], { env: { ...place.env, CODEMACHINE_MARK: mark }, stdio: 'ignore' })
    try {
      const { of } = await examine(place)
      expect(of('leftovers')).toMatchObject([{ status: 'warning', message: expect.stringContaining(String(left.pid)) }])
      expect(left.exitCode).toBeNull()
    } finally {
      left.kill('SIGKILL')
      await once(left, 'exit')
    }
  })

  test('takes wrong usage for wrong usage', async () => {
    await using place = await goodPlace()
    expect((await codemachine(place, ['doctor', '--nonsense'])).exitCode).toBe(2)
  })
})

test('a gigabyte is enough, 100 MiB are too little', () => {
  const statuses = [2 ** 30, 2 ** 30 - 1, 100 * 2 ** 20, 100 * 2 ** 20 - 1].map(bytes => judgeSpace('/', bytes).status)
  expect(statuses).toEqual(['ok', 'warning', 'warning', 'problem'])
})
