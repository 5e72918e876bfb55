import fc from 'fast-check'
import { expect, test } from 'vitest'
import { slashCommands } from '../../../src/doors/screen/host/slash.ts'
import { helpLines, startLines } from '../../../src/doors/screen/start.ts'
import { openTheme } from '../../../src/doors/screen/terminal/theme.ts'
import { NO_FACTS, type StartFacts } from '../../../src/project/login.ts'
import { Keymap } from '../../../src/project/settings/keys.ts'
import { widthOf } from '../../../src/tell/words/cells.ts'
import { hostileText } from './hostile-text.ts'

const plain = openTheme({ theme: 'plain', env: {}, reader: false })
const spoken = openTheme({ theme: 'plain', env: {}, reader: true })
const colours = openTheme({ theme: 'dark', env: { TERM: 'xterm-256color', COLORTERM: 'truecolor' }, reader: false })
const NOW = Date.parse('2026-11-21T10:00:00Z')

const FACTS: StartFacts = {
  mode: 'goal',
  directory: '~/work',
  git: { kind: 'repository', branch: 'main' },
  model: { model: null, effort: 'high', provider: null },
  usualModel: null,
  codex: { kind: 'found', version: '0.169.0' },
  login: { kind: 'in', by: 'ChatGPT (pro)' },
  hasOwnLogin: false,
  wouldProve: null,
  resumable: [
    { id: '20261121_1', goal: 'build X', rounds: 3, stopped: 'cut off', at: NOW - 2 * 3_600_000 },
    { id: '20261120_1', goal: 'build W', rounds: 1, stopped: 'stalled', at: NOW - 26 * 3_600_000 },
  ],
  queue: ['then this', 'and that'],
  missing: [],
}

const lines = (facts: StartFacts, columns: number, rows: number, theme = plain) =>
  startLines(facts, { columns, rows, theme, now: NOW })

test('all that is known stands below the logo', () => {
  const shown = lines(FACTS, 80, 23)
  expect(shown.slice(6)).toEqual([
    'Enter     type a goal; codemachine works until it is done',
    '/start    starts a goal, from the specification (/templates changes it)',
    'Directory ~/work',
    'Branch    main',
    "Model     codex's default, effort high",
    'Codex     0.169.0',
    'Login     logged in with ChatGPT (pro)',
    'Queue     2 prompts, next: "then this"',
    'Resume    20261121_1 "build X" · 3 rounds, cut off 2 h ago · /resume',
    '          20261120_1 "build W" · 1 round, stalled 1 d ago',
  ])
  expect(shown[0]).toContain('████')
})

test('after a session has ended the logo does not come again', () => {
  const shown = startLines(FACTS, { columns: 80, rows: 23, theme: plain, now: NOW, hasLogo: false })
  expect(shown).toEqual(lines(FACTS, 80, 23).slice(6))
})

test('what is not known yet is shown as that', () => {
  expect(lines(NO_FACTS, 80, 23)).toContain('Login     …')
  expect(lines(NO_FACTS, 80, 23, spoken)).toContain('Login     not known yet')
})

test('the logo grows with the terminal, and is words for a screen reader', () => {
  expect(lines(FACTS, 69, 30)[0]).toContain('╔═╗')
  expect(lines(FACTS, 39, 30)[0]).toBe('CODE MACHINE')
  expect(lines(FACTS, 120, 8)[0]).toBe('CODE MACHINE')
  expect(lines(FACTS, 120, 40, spoken)[0]).toBe('CODE MACHINE')
})

test('on 40x10 the small logo and what matters most are left', () => {
  expect(lines({ ...FACTS, missing: ['Codex is not logged in.'], login: { kind: 'out' } }, 40, 6)).toEqual([
    'CODE MACHINE',
    'Missing   /doctor: Codex is not logged',
    '          in.',
    'Directory ~/work',
    "Model     codex's default, effort high",
    'Login     not logged in: /login',
  ])
})

test('what is missing is told with its remedy, on up to three rows where there is room', () => {
  const why =
    'CODEX_BIN names /nope/codex, but there is no such file; correct it, or unset it to use the codex on PATH.'
  const missing = (text: string, rows: number) => lines({ ...FACTS, missing: [text] }, 60, rows)
  expect(missing(why, 23).slice(4, 8)).toEqual([
    'Missing   /doctor: CODEX_BIN names /nope/codex, but there is',
    '          no such file; correct it, or unset it to use the',
    '          codex on PATH.',
    'Enter     type a goal; codemachine works until it is done',
  ])
  expect(missing(why.repeat(3), 23)[6]).toMatch(/^ {10}\S.*…$/)
  expect(missing(why, 14).slice(4, 6)).toEqual([
    'Missing   /doctor: CODEX_BIN names /nope/codex, but there…',
    'Enter     type a goal; codemachine works until it is done',
  ])
  expect(missing(why, 14)).toHaveLength(14)
  const twice = lines({ ...FACTS, missing: [why, why] }, 60, 19)
  expect(twice.filter(line => line.startsWith('          '))).toHaveLength(2 + 2 + 1)
  expect(twice.at(-1)).toContain('20261120_1')
})

test('where nothing proves a goal, what would is said on one row', () => {
  const wouldProve = '--verify auto runs "npm test"; --prove checks each sentence'
  expect(lines({ ...FACTS, wouldProve }, 100, 23)).toContain(`Proof     nothing checks your goal. ${wouldProve}`)
  expect(lines(FACTS, 100, 23).join('\n')).not.toContain('Proof')
})

test('without git, codex or a queue that is said, or left out', () => {
  const facts: StartFacts = {
    ...FACTS,
    git: { kind: 'none' },
    codex: { kind: 'missing', why: 'none' },
    queue: [],
    resumable: [],
    missing: ['No codex was found.', 'git was not found.'],
  }
  expect(lines(facts, 80, 23).slice(6)).toEqual([
    'Missing   /doctor: No codex was found.',
    '          git was not found.',
    'Enter     type a goal; codemachine works until it is done',
    '/start    starts a goal, from the specification (/templates changes it)',
    'Directory ~/work',
    'Branch    not a git repository',
    "Model     codex's default, effort high",
  ])
})

test('whatever names, goals and paths hold, no line is too wide, there are not too many, and nothing steers the terminal', () => {
  const text = fc.oneof(hostileText, fc.constantFrom('日本語'.repeat(60), '👩‍👩‍👧‍👦'.repeat(50), 'e\u0301'.repeat(300)))
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 120 }), fc.integer({ min: 0, max: 40 }), (hostile, columns, rows) => {
      const facts: StartFacts = {
        ...FACTS,
        mode: hostile,
        directory: hostile,
        git: { kind: 'repository', branch: hostile },
        model: { model: hostile, effort: hostile, provider: hostile },
        login: { kind: 'unknown', why: hostile },
        resumable: [{ id: hostile, goal: hostile, rounds: 1, stopped: hostile, at: 0 }],
        queue: [hostile],
        missing: [hostile, hostile],
      }
      const shown = lines(facts, columns, rows)
      expect(shown.length).toBeLessThanOrEqual(rows)
      for (const line of shown) {
        expect(widthOf(line)).toBeLessThanOrEqual(columns)
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u)
      }
    }),
  )
})

test('colours end on the line on which they begin, and take no cell', () => {
  for (const line of lines(FACTS, 80, 23, colours)) expect(widthOf(line)).toBeLessThanOrEqual(80)
})

test('a session can be left running, but not that of a demo', () => {
  const leaves = (isDemo: boolean) =>
    slashCommands({ login: null, showsSession: true, isDemo }).some(({ name }) => name === 'detach')
  expect([leaves(false), leaves(true)]).toEqual([true, false])
})

test('the login command that applies is offered, and which login there is', () => {
  const of = (login: StartFacts['login'], hasOwnLogin = false) => slashCommands({ login, hasOwnLogin })
  const names = of(null).map(({ name }) => name)
  expect(names).toEqual(
    'start,change,resume,sessions,templates,queue,report,diff,status,model,login,doctor,theme,follow,team,flow,plan,palette,web,mcp,version,help,exit'.split(
      ',',
    ),
  )
  expect(of({ kind: 'not-needed' }, true)[10]?.name).toBe('logout')
  expect(of({ kind: 'out' })[10]).toMatchObject({ name: 'login', note: null })
  expect(of({ kind: 'in', by: 'ChatGPT (plus)' })[10]).toMatchObject({
    name: 'logout',
    note: 'rounds use ChatGPT (plus)',
  })
})

test('help names every key and command, and fits every terminal', () => {
  for (const columns of [20, 40, 80, 200]) {
    const help = helpLines({ columns, theme: plain, keymap: new Keymap(), commands: slashCommands({ login: null }) })
    for (const line of help) expect(widthOf(line)).toBeLessThanOrEqual(columns)
    for (const word of ['Tab', 'Alt+↑', 'Esc', 'Ctrl+C', 'Ctrl+G', 'Ctrl+Z', '/doctor', '/exit']) {
      expect(help.join('\n')).toContain(word)
    }
  }
})
