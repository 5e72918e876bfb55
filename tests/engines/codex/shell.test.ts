import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makePlace } from '../../support/place.ts'
import { endProcessesOf, processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'
import { endAfterEach } from './end-after-each.ts'
import { openShellIn } from './open-shell-in.ts'

const place = await makePlace('')
const peers = await mkdtemp('/var/tmp/codemachine-shell-')
const after = endAfterEach()
afterAll(async () => {
  endProcessesOf(place)
  await place[Symbol.asyncDispose]()
  await rm(peers, { recursive: true })
})

const open = async (options?: Parameters<typeof openShellIn>[1]) => after.use(await openShellIn(place, options))
const inPlace = (name: string) => join(place.directory, name)
const inTemporary = (name: string) => join(place.root, 'temporary', name)

/** Resolves once a command has made this file in the work directory, and removes it. */
async function made(name: string): Promise<void> {
  await untilInFolder(place.directory, name, () => existsSync(inPlace(name)) || null)
  await rm(inPlace(name))
}

test('many commands run on one app-server, each with its two streams apart and no input', async () => {
  const { run, servers } = await open()
  expect(await run('echo out; echo err >&2; cat; read line || echo end; exit 3')).toEqual({
    kind: 'exited',
    exitCode: 3,
    stdout: 'out\nend\n',
    stderr: 'err\n',
    durationMs: expect.any(Number),
  })
  const ends = await Promise.all([1, 2, 3, 4].map(n => run(`echo ${n}; [[ ${n} == ${n} ]] && echo bash; pwd`)))
  expect(ends.map(({ stdout }) => stdout)).toEqual([1, 2, 3, 4].map(n => `${n}\nbash\n${place.directory}\n`))
  expect(await run('no-such-program')).toMatchObject({ kind: 'exited', exitCode: 127 })
  expect(await servers()).toHaveLength(1)
})

promise('T31')
test('a variable is one of that command alone, whole, and stands in no file of codex and in no log', async () => {
  const { run, logged } = await open({ env: { RUST_LOG: 'trace' } })
  const values = {
    TOKEN: 'only-for-this-one-4711=',
    ODD: ` "it's" $HOME \\n %s\t\\\\ \n\n ä€😀 \r\n`,
    LONG: `only-for-this-one-4711${'x\n'.repeat(32_000)}`,
  }
  const print = `node -e 'console.log(JSON.stringify([process.env.TOKEN, process.env.ODD, process.env.LONG.length, process.env.RUST_LOG]))'`
  const ends = await Promise.all([1, 2, 3, 4].map(() => run(`cat; ${print}; sleep 0.2`, { env: values })))
  for (const { stdout } of ends)
    expect(JSON.parse(stdout)).toEqual([values.TOKEN, values.ODD, values.LONG.length, 'trace'])
  expect(await run('echo "[$TOKEN]"; env | grep -c CODEMACHINE_MARK; echo "[$GIT_DIR]"')).toMatchObject({
    stdout: '[]\n1\n[]\n',
  })
  expect(await run('exit 4', { env: values })).toMatchObject({ kind: 'exited', exitCode: 4, stderr: '' })
  const home = place.env.CODEX_HOME ?? ''
  // Codex writes its log some seconds later.
  const texts = await untilInFolder(home, 'what codex was asked to run', () => {
    const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    const found = files.map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    return found.some(text => text.includes('exit 4')) ? found : null
  })
  expect(texts.filter(text => text.includes('only-for-this-one'))).toEqual([])
  expect(logged.join('\n')).not.toContain('only-for-this-one')
})

test('what is not to be read can neither be read, nor moved, nor made; another list counts for the commands after it', async () => {
  await writeFile(inPlace('.env'), 'HIDDEN\n')
  const { run, servers } = await open()
  const unreadable = ['.env', '.env.local', 'not-there/.env'].map(inPlace)
  const tries =
    'cat .env; cp .env copy; mv .env other; ln .env hard; echo x > .env.local; ls not-there; echo ok > free; cat free'
  const { stdout, stderr } = await run(tries, { unreadable })
  expect(stdout).toBe('ok\n')
  expect(stderr.match(/Permission denied|busy|Read-only/g)?.length).toBeGreaterThanOrEqual(4)
  expect([existsSync(inPlace('copy')), existsSync(inPlace('not-there'))]).toEqual([false, false])
  await rm(inPlace('.env.local'), { force: true })
  await mkdir(inPlace('not-there'))
  expect((await run('echo x > not-there/.env', { unreadable })).stderr).toMatch(/denied|Read-only/)
  expect(await run('cat .env', { unreadable: [] })).toMatchObject({ exitCode: 0, stdout: 'HIDDEN\n' })
  await run('true')
  expect(await servers()).toHaveLength(1)
})

promise(
  'T55',
  'A command with secrets writes the project and a temporary folder of its own alone, which is removed after it; the folders of one that was killed are removed by the next',
)
test('what a command with a variable of its own writes lies where it was given a folder, which is gone after it', async () => {
  const { run, servers } = await open()
  const outside = ['/tmp', '/var/tmp', '$HOME', '/dev/shm'].map(folder => `${folder}/left-4711`)
  const tries = outside.map(path => `echo "$KEY" > "${path}"`).join('; ')
  const writes =
    'echo "$KEY" > "$TMPDIR/one"; f=$(mktemp); cat "$TMPDIR/one" > "$f"; cat <<< heredoc; echo "$KEY" > inside'
  const { stdout, stderr } = await run(
    `${writes}; ls "$TMPDIR"; echo "$TMPDIR"; [ "$TMP$TEMP" = "$TMPDIR$TMPDIR" ]; ${tries}`,
    {
      env: { KEY: 'only-for-this-one' },
    },
  )
  const [heredoc, one, made, folder = ''] = stdout.trim().split('\n')
  expect([heredoc, made, one]).toEqual(['heredoc', expect.stringMatching(/^tmp\./), 'one'])
  expect(folder.startsWith(`${inTemporary(String(process.pid))}-`)).toBe(true)
  expect(stderr.match(/Read-only file system|No such file/g)?.length).toBeGreaterThanOrEqual(3)
  expect(await readFile(inPlace('inside'), 'utf8')).toBe('only-for-this-one\n')
  // As another agent would look for it.
  const looks = `cat ${outside.join(' ')} ${folder}/*; find ${inTemporary('')} -type f; true`
  expect(await run(looks, { unreadable: [inTemporary('')] })).toMatchObject({ stdout: '' })
  const other = await run('echo "$TMPDIR"; echo x > "$TMPDIR/x"', { env: { KEY: 'of another' } })
  expect(other).toMatchObject({ exitCode: 0, stdout: expect.not.stringContaining(folder) })
  expect(await servers()).toHaveLength(2)
})

promise('T55')
test('the temporary folders of a shell are gone when it is closed, and so are those that a killed one has left', async () => {
  const left = inTemporary('999999999-abcdef')
  await mkdir(join(left, 't-one'), { recursive: true })
  await writeFile(join(left, 't-one', 'file'), 'only-for-this-one')
  const { run, shell } = await open()
  await run('mkdir -p "$TMPDIR/deep/er"; chmod 500 "$TMPDIR/deep"; echo x > "$TMPDIR/x"', { env: { KEY: 'value' } })
  await shell[Symbol.asyncDispose]()
  const names = readdirSync(inTemporary(''))
  expect(names.filter(name => name.startsWith('999999999'))).toEqual([])
  if (process.getuid?.() === 0) expect(names.filter(name => name.startsWith(`${process.pid}-`))).toEqual([])
})

test('a command that still runs while another list counts ends as it would have', async () => {
  const { run } = await open()
  const first = run('touch begun; until [ -e go ]; do sleep 0.05; done; echo first', { unreadable: [inPlace('.env')] })
  await made('begun')
  expect(await run('touch go; echo second')).toMatchObject({ stdout: 'second\n' })
  expect(await first).toMatchObject({ kind: 'exited', stdout: 'first\n' })
})

describe('where nothing can be denied, commands run as the rounds do', () => {
  test.each(['read-only', 'danger-full-access'] as const)('%s', async mode => {
    const { run } = await open({ mode })
    await writeFile(inPlace('.env'), 'SEEN\n')
    const { stdout } = await run('cat .env; touch written && echo wrote', { unreadable: [inPlace('.env')] })
    expect(stdout).toBe(mode === 'read-only' ? 'SEEN\n' : 'SEEN\nwrote\n')
  })
})

test.each(['workspace-write', 'danger-full-access'] as const)(
  'a command whose time is up ends with all that it started, and no other with it (%s)',
  async mode => {
    const { run, timeIsUp } = await open({ mode })
    const other = run('touch other; until [ -e go ]; do sleep 0.05; done; echo other', { timeoutMs: 50_000 })
    await made('other')
    const slow = run('echo before; setsid sleep 1001 & trap "" TERM; touch begun; while :; do sleep 1002; done')
    await made('begun')
    timeIsUp()
    expect(await slow).toMatchObject({ kind: 'timed-out', stdout: 'before\n' })
    expect(processesOf(place).filter(line => /sleep 100\d/.test(line))).toEqual([])
    await writeFile(inPlace('go'), '')
    expect(await other).toMatchObject({ kind: 'exited', stdout: 'other\n' })
    await rm(inPlace('go'))
  },
)

test.each(['workspace-write', 'danger-full-access'] as const)(
  'what a command leaves running is gone when it is told how it ended (%s)',
  async mode => {
    const { run } = await open({ mode })
    expect(
      await run('setsid sleep 1003 >/dev/null 2>&1 & (nohup sleep 1004 >/dev/null 2>&1 &) ; echo ok'),
    ).toMatchObject({
      exitCode: 0,
      stdout: 'ok\n',
    })
    expect(processesOf(place).filter(line => /sleep 100\d/.test(line))).toEqual([])
  },
)

test('a command that is broken off, and all of them when the shell is closed, end with what they started', async () => {
  const { run, shell } = await open()
  const stop = new AbortController()
  const first = run('touch begun; sleep 1005', { signal: stop.signal })
  await made('begun')
  stop.abort()
  expect(await first).toMatchObject({ kind: 'broken-off' })
  expect(await run('echo never', { signal: stop.signal })).toMatchObject({ kind: 'broken-off', stdout: '' })
  const second = run('touch begun; sleep 1006')
  await made('begun')
  await shell[Symbol.asyncDispose]()
  expect(await second).toMatchObject({ kind: 'broken-off' })
  expect(await run('echo never')).toMatchObject({ kind: 'broken-off', stdout: '' })
  expect(processesOf(place)).toEqual([])
})

test('of a command that prints without end the last characters are kept, in plain text and whole', async () => {
  const { run } = await open()
  const { stdout, stderr } = await run(String.raw`yes $'\033[31mé€😀\033[0m' | head -n 1000000; seq 30000 >&2`, {
    mostCharacters: 999,
  })
  expect(stdout.length).toBe(999)
  expect(stdout.replace(/^.*?\n/u, '').replaceAll('é€😀\n', '')).toBe('')
  expect(stderr.length).toBe(999)
  expect(stderr.endsWith('29999\n30000\n')).toBe(true)
})

promise('T56')
test('what a command prints has its characters whole, also where it was cut between their bytes', async () => {
  const { run } = await open()
  const lines = 'printf "aü€😀" | fold -b -w 2; printf "aü€😀" >&2'
  const { stdout, stderr } = await run(lines)
  expect([stdout.replaceAll('\n', ''), stderr]).toEqual(['aü€😀', 'aü€😀'])
})

test('an app-server that dies while a command runs is said, and the next command has another', async () => {
  const { run, servers } = await open()
  const first = run('touch begun; sleep 1007')
  await made('begun')
  const [server = Number.NaN] = await servers()
  process.kill(server, 'SIGKILL')
  expect(await first).toMatchObject({ kind: 'not-started', problem: expect.stringContaining('codex was killed') })
  expect(processesOf(place).filter(line => line.includes('sleep 1007'))).toEqual([])
  expect(await run('echo again')).toMatchObject({ kind: 'exited', stdout: 'again\n' })
})

test('a command with a variable ends when its time is up, also where codex does not take the variable any more', async () => {
  const { run, servers, timeIsUp } = await open()
  const env = { TOKEN: 'only-for-this-one-4711=' }
  expect(await run('true', { env })).toMatchObject({ exitCode: 0 })
  const [server = Number.NaN] = await servers()
  process.kill(server, 'SIGSTOP')
  const ended = run('sleep 1008', { env })
  timeIsUp()
  expect(await ended).toMatchObject({ kind: 'timed-out' })
  expect(await run('echo again', { env, timeoutMs: 50_000 })).toMatchObject({ stdout: 'again\n' })
})

test('a codex that dies before it is asked to run a command is started once more, and then it is said', async () => {
  const count = inPlace('starts')
  const path = await writePeer(
    peers,
    `;(await import('node:fs')).appendFileSync(${JSON.stringify(count)}, 'x'); process.stderr.write('no home\\n'); process.exit(3)`,
  )
  const { run } = await open({ path })
  expect(await run('echo hi')).toMatchObject({ kind: 'not-started', problem: 'codex ended with exit code 3. no home' })
  expect(await readFile(count, 'utf8')).toBe('xx')
  await rm(count)
})

test('a program that is no codex is said', async () => {
  const { run } = await open({ path: '/nowhere/codex' })
  expect(await run('echo hi')).toMatchObject({ kind: 'not-started', problem: expect.stringContaining('ENOENT') })
})
