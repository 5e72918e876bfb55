import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../src/platform/terminal.ts'
import { logIn } from '../../../src/project/login.ts'
import { codemachine } from '../../support/codemachine.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { logInThere, type ScriptedIssuer, startIssuer } from '../../support/scripted-issuer.ts'
import { makePlace as makeContext } from './place.ts'

const KEY = 'sk-proj-nobody-0123456789abcdef'
const NOBODY_ELSE = 'codemachine: No new login: the earlier login is unchanged. (CM0306)\n'

const NOTHING = { model: null, effort: null }

let issuer: ScriptedIssuer
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer[Symbol.asyncDispose]())

async function openPlace(): Promise<TestPlace> {
  const place = await makePlace('')
  await logInThere(place, issuer)
  issuer.answer = 'yes'
  return place
}

const ownHome = ({ home }: TestPlace) => join(home, '.codemachine', 'codex')
const loginFile = (place: TestPlace) => join(ownHome(place), 'auth.json')
const withKey = (place: TestPlace, input = `${KEY}\n`) => codemachine(place, ['login', '--with-api-key'], { input })

/** With a key, before the test; answers what codex has of it. */
async function wasLoggedIn(place: TestPlace): Promise<string> {
  const login = JSON.stringify({ auth_mode: 'apikey', OPENAI_API_KEY: KEY })
  await writeFile(loginFile(place), login, { mode: 0o600 })
  return login
}

/** The browser's login as far as codex waits for the browser: it has one port for that, so only one waits at a time. */
async function waitsForBrowser(place: TestPlace) {
  const terminal = startInEmulator(place, ['login'], { columns: 1000, rows: 40 })
  await terminal.until(/[?&]state=[^&\s]+&/)
  const [, state = ''] = /[?&]state=([^&\s]+)/.exec(terminal.bytes()) ?? []
  return { terminal, state }
}

describe('codemachine login', () => {
  promise('E20', "A login of codemachine's own is what rounds use")
  test('with a code logs in for the rounds, beside the person’s own codex', async () => {
    await using place = await openPlace()
    const { exitCode, stdout, stderr } = await codemachine(place, ['login', '--device-auth'])
    expect(stderr + stdout).toContain('ABCD-1234')
    expect(stdout).toMatch(/Logged in: ChatGPT \(plus\)\. Rounds now use it\.\n$/)
    expect(exitCode).toBe(0)
    expect(statSync(ownHome(place)).mode & 0o777).toBe(0o700)
    expect(statSync(loginFile(place)).mode & 0o777).toBe(0o600)
    expect(existsSync(join(place.codexHome, 'auth.json'))).toBe(false)
    const profile = readFileSync(join(ownHome(place), 'backend-dev.config.toml'), 'utf8')
    expect(profile).toContain('model_reasoning_effort = "high"')
    expect(await codemachine(place, ['login', 'status'])).toMatchObject({
      exitCode: 0,
      stdout: `Rounds use codemachine's own codex folder (${ownHome(place)}), logged in with ChatGPT (plus).\n`,
    })
    const before = readFileSync(loginFile(place))
    issuer.answer = 'no'
    expect(await codemachine(place, ['login', '--device-auth'])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining(NOBODY_ELSE),
    })
    expect(readFileSync(loginFile(place))).toEqual(before)
    expect(readdirSync(ownHome(place))).not.toContain('new-login')
  })

  test('with a key on stdin keeps the key where codex does, and nowhere else', async () => {
    await using place = await openPlace()
    expect(await withKey(place, '')).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/codemachine: Nobody is logged in\. \(CM0306\)\n$/),
    })
    expect(existsSync(loginFile(place))).toBe(false)
    const first = await withKey(place)
    expect(first).toMatchObject({ exitCode: 0, stdout: 'Logged in: an API key. Rounds now use it.\n' })
    const second = await codemachine(place, ['login', '--with-api-key', '--json'], { input: 'sk-another\n' })
    expect(second.exitCode).toBe(0)
    expect(JSON.parse(second.stdout)).toEqual({
      v: 1,
      message: 'Logged in: an API key. Rounds now use it.',
      login: 'in',
    })
    expect(JSON.parse(readFileSync(loginFile(place), 'utf8'))).toMatchObject({ OPENAI_API_KEY: 'sk-another' })
    expect([first, second].map(({ stdout, stderr }) => stdout + stderr).join('')).not.toMatch(/sk-proj|sk-another/)
    const holding = readdirSync(place.root, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))
      .filter(path => /sk-proj|sk-another/.test(readFileSync(path, 'latin1')))
    expect(holding).toEqual([loginFile(place)])
  })

  test('that is left by Ctrl+C or refused in the browser is none, and what was there stays', async () => {
    await using place = await openPlace()
    const refused = await waitsForBrowser(place)
    await using asked = refused.terminal
    await asked.until('codemachine login --device-auth')
    const answer = `error=access_denied&error_description=no&state=${refused.state}`
    await fetch(`http://127.0.0.1:1455/auth/callback?${answer}`)
    expect(await asked.ended).toEqual({ exitCode: 4 })
    expect(asked.bytes()).toMatch(/Sign-in failed: no\s+codemachine: Nobody is logged in\. \(CM0306\)\s+$/)
    const before = await wasLoggedIn(place)
    const { terminal } = await waitsForBrowser(place)
    await using _ = terminal
    terminal.press('ctrl+c')
    expect(await terminal.ended).toEqual({ exitCode: 130 })
    expect(terminal.bytes()).toContain('No new login: the earlier login is unchanged.')
    expect(readFileSync(loginFile(place), 'utf8')).toEqual(before)
    expect(processesOf(place).filter(each => each.includes('codex'))).toEqual([])
  })

  test('that nobody ends in the browser ends by itself', async () => {
    await using place = await makeContext()
    const path = join(place.directory, 'codex')
    await writeFile(path, '#!/bin/sh\nexec /bin/sleep 60\n', { mode: 0o755 })
    const { promise: never } = Promise.withResolvers<void>()
    const wait = (ms: number) => (ms > 600_000 ? Promise.resolve() : never)
    const context = { ...place.context, clock: { ...place.context.clock, wait } }
    const { root, directory } = place.records
    const end = await logIn(
      {
        world: context,
        codex: { path, version: '0.169.0' },
        setting: 'auto',
        root,
        directory,
        settings: NOTHING,
        overrides: [],
      },
      { way: 'browser', key: null, inTerminal: runInTerminal },
    )
    expect(end).toEqual({ kind: 'not', stays: false, interrupted: false, why: 'It took longer than 15 minutes.' })
  })

  test('in a browser is refused where nobody has a terminal, and a key that is typed is not repeated', async () => {
    await using place = await openPlace()
    const { exitCode, stderr } = await codemachine(place, ['login'])
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(
      /^codemachine: The login in the browser needs a terminal.*--device-auth.*--with-api-key.*\n$/,
    )
    expect(existsSync(loginFile(place))).toBe(false)
    for (const args of [['--with-api-key', KEY], [`--with-api-key=${KEY}`], [`--with-key=${KEY}`]]) {
      const typed = await codemachine(place, ['login', ...args])
      expect(typed.exitCode).toBe(2)
      expect(typed.stderr).toContain('never from an argument')
      expect(typed.stdout + typed.stderr).not.toContain(KEY)
    }
    const elsewhere = await codemachine(place, [`--with-api-key=${KEY}`, 'login'])
    expect(elsewhere.exitCode).toBe(2)
    expect(elsewhere.stderr).toMatch(/^codemachine: .* has no option --with-api-key\. \(CM0102\)\n/)
    expect(elsewhere.stderr).not.toContain(KEY)
  })

  test('says so first where rounds will not use it', async () => {
    await using place = await openPlace()
    place.env.CODEMACHINE_CODEX_HOME = 'own'
    const { exitCode, stdout, stderr } = await withKey(place)
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(
      /^codemachine: Because the setting codexHome is "own", rounds still use your own codex login/,
    )
    expect(stdout).toBe(`Logged in: an API key. Rounds still use ${place.codexHome}.\n`)
  })

  test('asks for the key on a terminal without showing it', async () => {
    await using place = await openPlace()
    await using terminal = startInEmulator(place, ['login', '--with-api-key'])
    await terminal.until('API key (your typing is hidden):')
    terminal.type(KEY)
    terminal.press('enter')
    await terminal.until('Logged in: an API key.')
    expect(await terminal.ended).toEqual({ exitCode: 0 })
    expect(terminal.bytes()).not.toContain(KEY)
    expect(JSON.parse(readFileSync(loginFile(place), 'utf8'))).toMatchObject({ OPENAI_API_KEY: KEY })
    await using left = startInEmulator(place, ['login', '--with-api-key'])
    await left.until('API key (your typing is hidden):')
    left.press('ctrl+c')
    expect(await left.ended).toEqual({ exitCode: 130 })
  })

  test('needs a codex that does it', async () => {
    await using place = await openPlace()
    const program = join(place.root, 'codex-that-breaks')
    await writeFile(program, '#!/bin/sh\n[ "$1" = --version ] && echo codex-cli 0.169.0 || exit 7\n', { mode: 0o755 })
    await wasLoggedIn(place)
    place.env.CODEX_BIN = program
    expect(await codemachine(place, ['login', '--device-auth'])).toMatchObject({ exitCode: 4, stderr: NOBODY_ELSE })
    expect(await codemachine(place, ['logout'])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining(`codex could not log out in ${ownHome(place)}: it ended with exit code 7`),
    })
    expect((await codemachine(place, ['login', '--device-auth', '--with-api-key'])).exitCode).toBe(2)
  })
})

test('codemachine logout takes that login away, and says what rounds use then', async () => {
  await using place = await openPlace()
  const then = `Rounds use your own codex folder (${place.codexHome}), where nobody is logged in.\n`
  expect(await codemachine(place, ['logout'])).toMatchObject({ exitCode: 0, stdout: `Nobody was logged in. ${then}` })
  await wasLoggedIn(place)
  expect(await codemachine(place, ['logout'])).toMatchObject({ exitCode: 0, stdout: `Logged out. ${then}`, stderr: '' })
  expect(existsSync(loginFile(place))).toBe(false)
  expect((await codemachine(place, ['login', 'status'])).exitCode).toBe(4)
})
