import { basename, dirname, join } from 'node:path'
import type { Act, Agent, TurnEnd } from './codex.ts'
import type { Naming } from './disk.ts'
import { Random } from './kernel.ts'
import { type Machine, WORK } from './machine.ts'
import { actsOfRole } from './roles.ts'

/** The lines that the work is to have, and that the gate asks for. */
export const ANSWER = join(WORK, 'answer.txt')

export const README = '# Answers\n'
/** Composed, as most systems write it. */
const ACCENTED = 'notes/caf\u00e9.txt'

/** The lines of checks that fail where a sentence of this kind does not hold, and one that hardly ever does. */
export const REAL_CHECKS = { must: 'check-answer', keep: 'check-readme' } as const
const WEAK_CHECK = 'check-some'

/** What a night is like, of its seed alone. */
export interface Character {
  /** How many lines the work is to have. */
  parts: number
  /** How often a turn does something else than honest work, from 0 to 1. */
  mischief: number
  /** How often a turn of codex fails by itself. */
  trouble: number
  /** How often the gate fails though the work is right. */
  flaky: number
  /** By what the work is done; `flow`: by a step of a workflow, between a step that only looks and a command. */
  mode: 'goal' | 'flow' | 'change' | 'build'
  /** Whether a person is asked about the plan of a change or a build. */
  asksPlan: boolean
  /** Whether what is asked for is proved sentence by sentence. */
  proves: boolean
  /** How the disk compares names. */
  naming: Naming
}

/**
 * The seeds of nights, one in eight a change and one in eight a build, and one in six each on a disk that compares names as macOS
 * or Windows does: these say so themselves, so that all others stay what they are.
 */
export function seedOf(seed: string, at: number, naming?: Naming): string {
  const part = new Random(`${seed}-${at} mode`).next()
  const names = naming ?? new Random(`${seed}-${at} names`).one(NAMINGS)
  return `${seed}-${at}${part < 1 / 8 ? '-change' : part < 1 / 4 ? '-build' : ''}${names === 'exact' ? '' : `-${names}`}`
}

/** Of each a share of the nights. */
export const NAMINGS: readonly Naming[] = ['exact', 'exact', 'exact', 'exact', 'macos', 'windows']

export function characterOf(seed: string): Character {
  const random = new Random(`${seed} character`)
  const [, named, naming = 'exact'] = seed.match(/(?:-(change|build))?(?:-(macos|windows))?$/) as unknown as [
    string,
    ('change' | 'build')?,
    Naming?,
  ]
  const mode = named ?? (new Random(`${seed} steps`).chance(0.15) ? 'flow' : 'goal')
  return {
    parts: 3 + random.below(4),
    mischief: random.one([0, 0, 0.2, 0.5]),
    trouble: random.one([0, 0, 0.1, 0.3]),
    flaky: random.one([0, 0, 0, 0.2]),
    mode,
    asksPlan: named !== undefined && new Random(`${seed} asks`).chance(0.7),
    proves: mode === 'goal' && new Random(`${seed} asked`).chance(0.3),
    naming,
  }
}

export function isRight(text: string | null, { parts }: Character): boolean {
  return text === textOf(parts)
}

/** So many lines, all right. */
function textOf(count: number): string {
  return Array.from({ length: count }, (_, at) => `right ${at + 1}\n`).join('')
}

/**
 * An agent that does the next part of the work that it finds, claims done once all is there, and now and then does something else.
 * What it does follows from the seed, the number of its turn, and the files.
 */
export class SeededAgent implements Agent {
  readonly #machine: Machine
  readonly #seed: string
  readonly #character: Character
  turns = 0
  gates = 0
  /** All that its turns were told. */
  readonly heard: string[] = []
  /** The tasks of a build on which an agent has worked. */
  readonly begun = new Set<string>()
  /** How many of its turns have fallen silent. */
  silent = 0
  #hasFailedByChance = false
  #window: { percent: number; resetsAt: number } | null = null
  /** Troubles of codex that a disturbance asks for. */
  readonly troubles: string[] = []

  constructor(machine: Machine, seed: string, character: Character) {
    this.#machine = machine
    this.#seed = seed
    this.#character = character
  }

  limits(): object | null {
    const { kernel } = this.#machine
    if (this.#window !== null && this.#window.resetsAt <= kernel.now()) this.#window = null
    const { percent, resetsAt } = this.#window ?? { percent: 3, resetsAt: kernel.now() + 3_600_000 }
    return {
      limitId: 'codex',
      primary: { usedPercent: percent, resetsAt: Math.floor(resetsAt / 1000), windowDurationMins: 300 },
      secondary: null,
      credits: null,
    }
  }

  steered(text: string): void {
    this.heard.push(text)
  }

  command(given: string, directory: string): { ms: number; exitCode: number; output: string } {
    const random = new Random(`${this.#seed} gate ${++this.gates}`)
    const { disk } = this.#machine
    const [line = '', files] = given.split(' ')
    const answer = disk.text(join(directory, 'answer.txt'))
    const isFine: Readonly<Record<string, boolean>> = {
      [REAL_CHECKS.must]: isRight(answer, this.#character),
      [REAL_CHECKS.keep]: disk.text(join(directory, 'README.md')) === README,
      [WEAK_CHECK]: answer !== null,
    }
    const areFilesThere = files === undefined || disk.text(join(directory, files, 'secret.txt')) !== null
    if (isFine[line] === undefined || !areFilesThere) return { ms: 10, exitCode: 127, output: `${line}: not found\n` }
    const isUnlucky = isFine[line] && random.chance(this.#character.flaky)
    // Nobody can tell a check that fails by chance each time from one that can tell.
    const isAgain = line === WEAK_CHECK && this.#hasFailedByChance
    if (line === WEAK_CHECK) this.#hasFailedByChance = isUnlucky
    const passes = isFine[line] && (!isUnlucky || isAgain)
    return { ms: 50 + random.below(20_000), exitCode: passes ? 0 : 1, output: passes ? '1 passed\n' : 'FAIL answer\n' }
  }

  turn(input: string, instructions: string, schema: string): ReturnType<Agent['turn']> {
    this.heard.push(input)
    const random = new Random(`${this.#seed} turn ${++this.turns}`)
    const plan = this.#plan(random, instructions, input, schema)
    return {
      ...plan,
      delayMs: () => 5 + random.below(random.chance(0.1) ? 60_000 : 2_000),
      isReordered: random.chance(0.3),
    }
  }

  /** What who proves the work answers, by the shape that is asked for; null: it is a round of the worker. */
  #proof(input: string, schema: string): string | null {
    const random = new Random(`${this.#seed} proof ${this.turns}`)
    const isSly = random.chance(this.#character.mischief)
    const check = (run: string, quote: string) => {
      const files = [{ path: 'secret.txt', text: `${run}: ${quote}\n` }]
      return { run: `${run} {files}`, seconds: 60, needs: null, files }
    }
    const kindOf = (quote: string) => (quote.startsWith('Keep') ? 'keep' : 'must')
    if (/"(?:sentences|versions)":/.test(schema) && isSly && random.chance(0.3)) return 'I have no idea.'
    if (schema.includes('"sentences":')) {
      const quotes = new Set(input.match(/Find [^.]*\.|Keep [^.]*\.|Something else\./g))
      const sentences = [...quotes].map(quote => {
        const kind = kindOf(quote)
        const run = isSly ? random.one([WEAK_CHECK, 'no-such-program', REAL_CHECKS.must]) : REAL_CHECKS[kind]
        const given = isSly && random.chance(0.2) ? 'Nobody said so.' : quote
        return { quote: given, kind, reason: null, checks: [check(run, quote)] }
      })
      return JSON.stringify({ sentences })
    }
    if (schema.includes('"versions":')) {
      const own = input.includes('break (keep)') ? 'README.md' : 'answer.txt'
      const path = isSly ? random.one(['../outside', 'new.txt', own]) : own
      return JSON.stringify({
        versions: [{ summary: 'It is wrong.', edits: [{ path, find: null, text: 'wrong\n' }] }],
      })
    }
    if (!schema.includes('"checks":')) return null
    const [, quote = ''] = input.match(/holds by its checks:\n.*\n(.*)/) ?? []
    return JSON.stringify({ checks: [check(REAL_CHECKS[kindOf(quote)], `once more: ${quote}`)] })
  }

  #plan(random: Random, instructions: string, input: string, schema: string): { acts: Act[]; end: TurnEnd } {
    const answer = this.#proof(input, schema)
    const work: Act[] =
      answer === null ? this.#work(random, instructions, input, schema) : [{ do: 'say', text: answer }]
    const acts: Act[] = [{ do: 'say', text: 'I look at what is there.' }, ...this.#renaming(work), ...work]
    const trouble = this.troubles.shift() ?? (random.chance(this.#character.trouble) ? random.one(TROUBLES) : null)
    if (trouble === null) return { acts, end: { kind: 'completed' } }
    const end = this.#endOf(trouble, random)
    // It breaks off anywhere.
    return { acts: acts.slice(0, random.below(acts.length + 1)), end }
  }

  /** Now and then it first gives files names that only some disks take for the same. */
  #renaming(work: readonly Act[]): Act[] {
    const random = new Random(`${this.#seed} names ${this.turns}`)
    if (this.#character.naming === 'exact' || !work.some(each => each.do === 'command') || random.chance(0.5)) return []
    const { disk } = this.#machine
    const memory = disk.look(join(WORK, '.codemachine/projects'))?.entries.keys() ?? []
    const files = [
      ...['answer.txt', 'README.md', '.git', '.gitignore', '.codemachine', '.git/config', 'notes', ACCENTED],
      ...[...memory].flatMap(name => ['MAIN.md', 'tasks.json'].map(file => `.codemachine/projects/${name}/${file}`)),
    ]
    const path = join(WORK, random.one(files))
    const renamed = random.one([
      (name: string) => name.toUpperCase(),
      (name: string) => name.charAt(0).toUpperCase() + name.slice(1),
      (name: string) => name.toLowerCase().normalize('NFD'),
    ])
    const act = () => {
      if (path.endsWith(ACCENTED)) disk.put(path, 'An accent.\n')
      if (disk.look(path) !== null) disk.rename(path, join(dirname(path), renamed(basename(path))))
    }
    return [{ do: 'command', line: 'mv', ms: 20, exitCode: 0, output: '', act }]
  }

  #endOf(trouble: string, random: Random): TurnEnd {
    const { kernel } = this.#machine
    switch (trouble) {
      case 'codex-window': {
        const ms = 60_000 * (1 + random.below(20))
        this.#window = { percent: 100, resetsAt: kernel.now() + ms }
        return { kind: 'failed', message: "You've hit your usage limit. Try again later.", info: 'usageLimitExceeded' }
      }
      case 'codex-busy':
        return {
          kind: 'failed',
          message: 'exceeded retry limit, last status: 429 Too Many Requests',
          info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
        }
      case 'codex-network':
        return {
          kind: 'failed',
          message: 'stream disconnected before completion',
          info: { responseStreamDisconnected: { httpStatusCode: null } },
        }
      case 'codex-context':
        return {
          kind: 'failed',
          message: 'Codex ran out of room in the context window.',
          info: 'contextWindowExceeded',
        }
      case 'codex-mute':
        this.silent++
        return { kind: 'mute' }
      case 'codex-lost-end':
        return { kind: 'lost-end' }
      case 'codex-cut':
        return { kind: 'cut-line' }
      case 'codex-killed':
        return { kind: 'killed' }
      default:
        return { kind: 'dies' }
    }
  }

  /** What it does with the files: looked at when the turn begins, changed while its commands run. */
  #work(random: Random, instructions: string, input: string, schema: string): Act[] {
    const { disk } = this.#machine
    const folder = this.#memoryOf(instructions)
    const acts = this.#role(instructions, folder ?? WORK, input, schema)
    if (acts !== null) return acts
    if (folder === null || /review/i.test(instructions.slice(0, 200)))
      return [{ do: 'say', text: '{"verdict":"agreed","summary":"Fine.","findings":[]}' }]
    const lines = (disk.text(ANSWER) ?? '').split('\n').slice(0, -1)
    const { parts, mischief } = this.#character
    const wrong = lines.findIndex((line, at) => line !== `right ${at + 1}`)
    const isWhole = isRight(disk.text(ANSWER), this.#character)
    const write = this.#writing(random)
    const note = this.#noting(folder)
    const sly = new Random(`${this.#seed} sly ${this.turns}`)
    if (sly.chance(mischief / 2) && isWhole) return [this.#leaveWriting(sly), note(parts, true)]
    if (sly.chance(mischief / 2) && lines.length === 0) return [this.#ignore(), write(textOf(1)), note(1, false)]
    if (random.chance(mischief)) return this.#mischief(random, folder, write, note)
    if (isWhole) return [note(parts, true), { do: 'say', text: 'All is done.' }]
    if (wrong !== -1 || lines.length > parts)
      return [write(textOf(Math.max(0, wrong))), note(Math.max(0, wrong), false)]
    return [
      write(textOf(lines.length + 1)),
      note(lines.length + 1, false),
      { do: 'say', text: `Part ${lines.length + 1} is done.` },
    ]
  }

  /** What it does in a change or a build; null: it is the worker of a goal. */
  #role(instructions: string, folder: string, input: string, schema: string): Act[] | null {
    const { mode, parts, mischief } = this.#character
    if (mode !== 'change' && mode !== 'build') return null
    const { disk } = this.#machine
    const random = new Random(`${this.#seed} role ${this.turns}`)
    const write = this.#writing(random)
    const right = () => {
      const lines = (disk.text(ANSWER) ?? '').split('\n')
      const wrong = lines.findIndex((line, at) => line !== `right ${at + 1}`)
      return wrong === -1 ? lines.length : wrong
    }
    return actsOfRole(instructions, {
      ...{ disk, random, parts, right, input, schema },
      isSly: random.chance(mischief),
      isWhole: () => isRight(disk.text(ANSWER), this.#character),
      main: join(folder, 'MAIN.md'),
      write: count => write(textOf(count)),
      mischief: () => this.#mischief(random, folder, write, this.#noting(folder)),
      begun: task => void this.begun.add(task),
    })
  }

  #writing(random: Random): (content: string) => Act {
    return content => ({
      do: 'command',
      line: 'write',
      ms: 100 + random.below(5_000),
      exitCode: 0,
      output: 'ok\n',
      act: () => this.#machine.disk.put(ANSWER, content),
    })
  }

  #noting(folder: string): (done: number, claims: boolean) => Act {
    return (done, claims) => ({
      do: 'command',
      line: 'note',
      ms: 50,
      exitCode: 0,
      output: '',
      act: () => this.#note(folder, done, claims),
    })
  }

  /** It leaves something running that changes the work once all is claimed to be done. */
  #leaveWriting(random: Random): Act {
    const act = () => this.#machine.disk.put(ANSWER, 'late\n')
    return { do: 'start', line: 'sleep 3; write', act, afterMs: random.below(8_000) }
  }

  /** It hides its work from git. */
  #ignore(): Act {
    const act = () => this.#machine.disk.put(join(WORK, '.gitignore'), 'node_modules/\nanswer.txt\n')
    return { do: 'command', line: 'ignore', ms: 20, exitCode: 0, output: '', act }
  }

  #mischief(
    random: Random,
    folder: string,
    write: (content: string) => Act,
    note: (done: number, claims: boolean) => Act,
  ): Act[] {
    const { disk } = this.#machine
    const { parts } = this.#character
    const later = (line: string, act: () => void): Act => ({ do: 'start', line, act, afterMs: random.below(90_000) })
    return random.one<() => Act[]>([
      // It lies.
      () => [note(parts, true)],
      () => [write('wrong\n'), note(parts, true)],
      // It does nothing.
      () => [{ do: 'say', text: 'Nothing to do.' }],
      // It floods.
      () => [{ do: 'say', text: 'word '.repeat(4_000) }],
      // It breaks its memory.
      () => [
        {
          do: 'command',
          line: 'break',
          ms: 20,
          exitCode: 0,
          output: '',
          act: () => disk.put(join(folder, 'tasks.json'), '{"tasks": ['),
        },
      ],
      () => [
        {
          do: 'command',
          line: 'remove',
          ms: 20,
          exitCode: 0,
          output: '',
          act: () => disk.look(join(folder, 'MAIN.md')) && disk.removeAll(join(folder, 'MAIN.md')),
        },
      ],
      // It leaves something running that writes later, and claims.
      () => [later('sleep 30; write', () => disk.put(ANSWER, 'late\n')), note(parts, true)],
      () => [later('sleep 30', () => {}), note(parts, false)],
      // It changes other things.
      () => [
        {
          do: 'command',
          line: 'touch',
          ms: 20,
          exitCode: 0,
          output: '',
          act: () => disk.put(join(WORK, 'notes', `${random.below(3)}.txt`), `${random.below(9)}\n`),
        },
      ],
      () => [
        { do: 'command', line: 'git commit', ms: 20, exitCode: 0, output: '', act: () => this.#machine.commit('Work') },
      ],
      () => [
        {
          do: 'command',
          line: 'ignore',
          ms: 20,
          exitCode: 0,
          output: '',
          act: () => disk.put(join(WORK, '.gitignore'), 'node_modules/\nanswer.txt\n'),
        },
        note(parts, true),
      ],
      () => [
        {
          do: 'command',
          line: 'config',
          ms: 20,
          exitCode: 0,
          output: '',
          act: () => disk.put(join(WORK, '.git/config'), '[core]\n\tfsmonitor = evil\n'),
        },
      ],
      () => [{ do: 'command', line: 'false', ms: 20, exitCode: 1, output: 'no\n' }],
    ])()
  }

  /** The folder of the session's memory, as its instructions name it. */
  #memoryOf(instructions: string): string | null {
    const named = instructions.match(/\.codemachine\/projects\/[\w-]+(?:\/steps\/\w+)?/)?.[0]
    if (named !== undefined) return join(WORK, named)
    const newest = [...(this.#machine.disk.look(join(WORK, '.codemachine/projects'))?.entries.keys() ?? [])].at(-1)
    return newest === undefined ? null : join(WORK, '.codemachine/projects', newest)
  }

  #note(folder: string, done: number, claims: boolean): void {
    const { disk } = this.#machine
    const tasks = Array.from({ length: this.#character.parts }, (_, at) => ({
      id: `T${at + 1}`,
      name: `Part ${at + 1}`,
      done: at < done,
    }))
    disk.put(join(folder, 'tasks.json'), `${JSON.stringify({ tasks }, null, 2)}\n`)
    const main = disk.text(join(folder, 'MAIN.md'))
    if (main !== null && claims)
      disk.put(join(folder, 'MAIN.md'), main.replace('finite_incantatem: false', 'finite_incantatem: true'))
  }
}

export const TROUBLES = [
  'codex-window',
  'codex-busy',
  'codex-network',
  'codex-context',
  'codex-mute',
  'codex-lost-end',
  'codex-cut',
  'codex-killed',
  'codex-dies',
] as const
