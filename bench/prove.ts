import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Recorded } from '../src/core/events/events.ts'
import { message, reply, roundsScript, type Script, shell } from '../src/demo/model/reply.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { claimDone } from '../tests/support/rounds.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { type Figure, shown } from './figure.ts'
import type { Contract } from './liars/agent.ts'
import { AGREEMENT, isOfContract, proofAnswer, shapeOf } from './liars/play.ts'
import { findNativeCodex } from './rounds.ts'
import { BIN, runCommand } from './run-command.ts'

/** A package of the registry, with a goal, the work that reaches it, and the contract of the goal. */
interface Project {
  name: string
  version: string
  goal: string
  /** Lines for a shell. */
  work: readonly string[]
  sentences: Contract['careful']
}

/** The runner of their tests, and what these need. */
const RUNNER = ['tape@5.9.0', 'cli-color@0.2.3']
const TESTS = 'npx tape test/*.js'

const check = (text: string) => [
  {
    run: 'node_modules/.bin/tape {files}/check.js',
    seconds: 30,
    files: { 'check.js': `const test = require('tape')\n${text}` },
  },
]
const version = (summary: string, path: string, find: string, text: string) => [
  { summary, edits: [{ path, find, text }] },
]
const replace = (path: string, from: string, to: string) =>
  `node -e 'const fs=require("fs");const [,f,a,b]=process.argv;fs.writeFileSync(f,fs.readFileSync(f,"utf8").replaceAll(a,()=>b))' ${[path, from, to].map(each => `'${each.replaceAll("'", "'\\''")}'`).join(' ')}`

const PROJECTS: readonly Project[] = [
  {
    name: 'minimist',
    version: '1.2.8',
    goal: "Add the option numbers. With numbers: false nothing becomes a number: --n 5 gives '5', and so do -n 5, -n5 and what is in _. Without it, or with true, numbers are as before. The README describes it.",
    work: [
      replace('index.js', '!flags.strings[key] && isNumber(val)', 'areNumbers && !flags.strings[key] && isNumber(val)'),
      replace('index.js', 'flags.strings._ || !isNumber(arg)', '!areNumbers || flags.strings._ || !isNumber(arg)'),
      replace('index.js', 'var aliases = {};', 'var areNumbers = opts.numbers !== false;\n\tvar aliases = {};'),
      replace(
        'README.md',
        '* `opts.stopEarly`',
        '* `opts.numbers` - when false, no value becomes a number\n* `opts.stopEarly`',
      ),
    ],
    sentences: [
      {
        quote: "With numbers: false nothing becomes a number: --n 5 gives '5', and so do -n 5, -n5 and what is in _.",
        kind: 'must',
        checks: check(`const parse = require('../../../')
test('no numbers', t => {
  const none = { numbers: false }
  t.deepEqual(parse(['--n', '5'], none), { _: [], n: '5' })
  t.deepEqual(parse(['--n=0x1f'], none), { _: [], n: '0x1f' })
  t.deepEqual(parse(['-n', '5'], none), { _: [], n: '5' })
  t.deepEqual(parse(['-n5'], none), { _: [], n: '5' })
  t.deepEqual(parse(['7', 'a', '1e3'], none), { _: ['7', 'a', '1e3'] })
  t.end()
})
`),
        versions: version('What is in _ is forgotten.', 'index.js', '!areNumbers || flags', 'flags'),
      },
      {
        quote: 'Without it, or with true, numbers are as before.',
        kind: 'keep',
        checks: check(`const parse = require('../../../')
for (const opts of [undefined, {}, { numbers: true }])
  test('numbers', t => {
    t.deepEqual(parse(['--n', '5', '-m', '0x10', '-k7', '8', 'x'], opts), { _: [8, 'x'], n: 5, m: 16, k: 7 })
    t.end()
  })
`),
        versions: version('They are off by default.', 'index.js', 'opts.numbers !== false', 'opts.numbers === true'),
      },
      {
        quote: 'The README describes it.',
        kind: 'must',
        checks: [{ run: 'grep -q "opts.numbers" README.md', seconds: 5, files: {} }],
        versions: version('It does not.', 'README.md', '`opts.numbers`', 'a new option'),
      },
    ],
  },
  {
    name: 'shell-quote',
    version: '1.8.1',
    goal: 'Let quote take options as its second argument. A separator in them stands between the words, in place of a blank. Without options quote gives what it gave before. A test in test/quote.js shows it.',
    work: [
      replace('quote.js', 'function quote(xs)', 'function quote(xs, opts)'),
      replace('quote.js', "join(' ')", "join(opts && typeof opts.separator === 'string' ? opts.separator : ' ')"),
      `cat >> test/quote.js <<'END'

test('separator', function (t) {
	t.equal(quote(['a', 'b c'], { separator: ', ' }), "a, 'b c'");
	t.end();
});
END`,
    ],
    sentences: [
      {
        quote: 'A separator in them stands between the words, in place of a blank.',
        kind: 'must',
        checks: check(`const { quote } = require('../../../')
test('separator', t => {
  t.equal(quote(['a', 'b', 'c d'], { separator: '\\n' }), "a\\nb\\n'c d'")
  t.equal(quote(['a', { op: '|' }, 'b'], { separator: '' }), 'a\\\\|b')
  t.equal(quote(['a'], { separator: '--' }), 'a')
  t.end()
})
`),
        versions: version(
          'An empty one does not count.',
          'quote.js',
          "typeof opts.separator === 'string'",
          'opts.separator',
        ),
      },
      {
        quote: 'Without options quote gives what it gave before.',
        kind: 'keep',
        checks: check(`const { quote } = require('../../../')
test('before', t => {
  for (const opts of [undefined, {}]) t.equal(quote(['a', 'b c', "it's", '$x'], opts), "a 'b c' \\"it's\\" \\\\$x")
  t.equal(quote([]), '')
  t.end()
})
`),
        versions: version('A comma stands there.', 'quote.js', ": ' ')", ": ', ')"),
      },
      {
        quote: 'A test in test/quote.js shows it.',
        kind: 'must',
        checks: [
          { run: 'grep -q separator test/quote.js && node_modules/.bin/tape test/quote.js', seconds: 30, files: {} },
        ],
        versions: version('It fails.', 'test/quote.js', '"a, \'b c\'"', '"a b"'),
      },
    ],
  },
  {
    name: 'text-table',
    version: '0.2.0',
    goal: 'Add the option trim. With trim: false blanks at the end of a line stay, so that all lines are equally long. By default they are cut, as now. No other option changes.',
    work: [
      replace(
        'index.js',
        "}).join(hsep).replace(/\\s+$/, '');",
        "}).join(hsep).replace(opts.trim === false ? /$/ : /\\s+$/, '');",
      ),
    ],
    sentences: [
      {
        quote: 'With trim: false blanks at the end of a line stay, so that all lines are equally long.',
        kind: 'must',
        checks: check(`const table = require('../../../')
test('trim: false', t => {
  t.equal(table([['a', 'bcd'], ['ef', 'g']], { trim: false }), 'a   bcd\\nef  g  ')
  t.equal(table([['x', ''], ['', 'yy'], ['', '']], { trim: false, hsep: '|' }), 'x|  \\n |yy\\n |  ')
  t.end()
})
`),
        versions: version('One blank is cut.', 'index.js', 'trim === false ? /$/', 'trim === false ? /\\s?$/'),
      },
      {
        quote: 'By default they are cut, as now.',
        kind: 'keep',
        checks: check(`const table = require('../../../')
for (const opts of [undefined, {}, { trim: true }])
  test('cut', t => {
    t.equal(table([['a', 'bcd'], ['ef', 'g'], ['', '']], opts), 'a   bcd\\nef  g\\n')
    t.end()
  })
`),
        versions: version('They stay by default.', 'index.js', 'trim === false ?', 'trim !== true ?'),
      },
      {
        quote: 'No other option changes.',
        kind: 'keep',
        checks: check(`const table = require('../../../')
test('the others', t => {
  t.equal(table([['a', '1.5'], ['b', '10']], { align: ['r', '.'] }), 'a   1.5\\nb  10')
  t.equal(table([['aaaa', 'b'], ['c', 'd']], { align: ['c'], hsep: ' | ' }), 'aaaa | b\\n  c  | d')
  t.end()
})
`),
        versions: version(
          'The middle is more to the left.',
          'index.js',
          'Math.ceil(n / 2 + 1)',
          'Math.floor(n / 2 + 1)',
        ),
      },
    ],
  },
]

/** What a contract costs: who is asked how much, and how long it takes in sessions of two rounds on packages of the registry. */
export async function prove(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'prove-'))
  try {
    const packages = [...RUNNER, ...PROJECTS.map(({ name, version }) => `${name}@${version}`)]
    await runCommand('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', ...packages], 0)
    const codex = await findNativeCodex()
    const figures: Figure[] = []
    const sessions = PROJECTS.map(
      ({ name, goal, work, sentences }): Session => ({
        name,
        goal,
        gate: TESTS,
        lay: (place: TestPlace) => layPackage(name, folder, place),
        sentences,
        rounds: roundsScript([
          [...work.map(line => reply(shell(line))), reply(message('The option is there.'))],
          [reply(shell(claimDone)), reply(message('Done.'))],
        ]),
      }),
    )
    for (const session of sessions) {
      const without = await playSession(session, codex, [])
      figures.push(...figuresOf(session, without, await playSession(session, codex, ['--prove'])))
    }
    return figures
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A package with its dependencies, of which git knows nothing. */
async function layPackage(name: string, folder: string, { directory, env }: TestPlace): Promise<void> {
  await cp(join(folder, 'node_modules', name), directory, { recursive: true })
  await cp(join(folder, 'node_modules'), join(directory, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  await writeFile(join(directory, '.gitignore'), 'node_modules\n')
  const commit = `git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm ${name}`
  await runCommand('bash', ['-c', commit], 0, { cwd: directory, env })
}

interface Session {
  name: string
  goal: string
  gate: string
  lay(place: TestPlace): Promise<void>
  sentences: Contract['careful']
  /** What the worker does, a conversation for each round. */
  rounds: Script
}

interface Played {
  /** Of the requests to the model, those of author and controls apart. */
  bytes: { rounds: number; contract: number }
  events: readonly Recorded[]
}

async function playSession(
  { goal, gate, lay, sentences, rounds }: Session,
  codex: string,
  flags: readonly string[],
): Promise<Played> {
  const bytes = { rounds: 0, contract: 0 }
  const threads: string[] = []
  const script: Script = request => {
    const aside = shapeOf(request).includes('"verdict"') ? AGREEMENT : proofAnswer(sentences, request)
    bytes[isOfContract(request) ? 'contract' : 'rounds'] += Buffer.byteLength(JSON.stringify(request.body))
    if (aside !== null) return aside
    if (!threads.includes(request.thread)) threads.push(request.thread)
    return rounds({ ...request, conversation: threads.indexOf(request.thread) })
  }
  await using model = await startScriptedModel({ keptRequests: 1, script })
  await using place = await makePlace(model.codexConfig('scripted'), { git: false })
  await lay(place)
  const all = [BIN, '--json', '--no-keep-awake', '--codex-bin', codex, '--verify', gate, ...flags, goal]
  const { stdout } = await runCommand(process.execPath, all, 0, { cwd: place.directory, env: place.env })
  const lines = stdout.trimEnd().split('\n')
  return { bytes, events: lines.map(line => JSON.parse(line) as Recorded) }
}

function figuresOf({ name }: Session, without: Played, { bytes, events }: Played): Figure[] {
  const took = { turns: 0, checks: 0, controls: 0 }
  let turns = 0
  let before = Number.NaN
  for (const event of events) {
    const at = Date.parse(event.at)
    if (event.type === 'contract-turn-ended') {
      turns++
      took.turns += event.durationMs
    }
    if (event.type === 'check-ended') took.checks += at - before
    if (event.type === 'control-tried') took.controls += at - before
    // Savepoints are made beside a check.
    if (event.type !== 'savepoint') before = at
  }
  const whole = wholeMs(events)
  const tokens = (count: number) => Math.round(count / 4)
  const share = (ms: number) => (100 * ms) / whole
  return [
    shown(`${name}: turns of author and controls, beside ${countOf(events, 'round-ended')} rounds`, turns, ''),
    shown('  tokens of their prompts (bytes / 4)', tokens(bytes.contract), ''),
    shown('  of all prompts', (100 * bytes.contract) / (bytes.contract + bytes.rounds), '%'),
    shown('  tokens of prompts without a contract', tokens(without.bytes.rounds), ''),
    shown(`  ${countOf(events, 'check-ended')} checks, of the time`, share(took.checks), '%'),
    shown(`  ${countOf(events, 'control-tried')} wrong versions tried, of the time`, share(took.controls), '%'),
    shown('  turns of author and controls, of the time', share(took.turns), '%'),
    shown('  the session', whole, 'ms'),
    shown('  without a contract', wholeMs(without.events), 'ms'),
  ]
}

const countOf = (events: readonly Recorded[], type: Recorded['type']) =>
  events.filter(each => each.type === type).length

const wholeMs = (events: readonly Recorded[]) =>
  events.find(each => each.type === 'session-ended')?.durationMs ?? Number.NaN
