import {
  type ArithmeticCommand,
  type Command,
  type CommandNode,
  type CompoundList,
  forEachChild,
  type If,
  type Pipeline,
  type PipelineNode,
  parse,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type TestExpression,
  type Word,
} from 'unbash'
import {
  type Argument,
  type Around,
  always,
  both,
  type Call,
  either,
  isWeak,
  NAME_UNKNOWN,
  NEVER,
  opposite,
  programNames,
  REAL,
  type Verdict,
  verdictOfCall,
  verdictOfTest,
} from './programs.ts'

/** The most of a line for a shell, in characters. */
const MOST_CHARACTERS = 2_000
/** So deep may shells be given lines for other shells. */
const MOST_SHELLS = 5

/**
 * Why a line for a shell proves nothing, or may not be run at all: the end of a sentence that says how it is mended; null if
 * it may stand. What it is made of is looked at, not how it is written: `true;`, `npm test || :` and `sh -c "exit 0"` succeed
 * whatever the work is like. One that always fails may stand. Pure.
 * @param made files that the change makes: that one of them is there proves nothing
 */
export function weakness(run: string, made: readonly string[] = []): string | null {
  const line = run.trim()
  if (line === '') return `is empty. ${MEND}`
  if (line.length > MOST_CHARACTERS) {
    return `has ${line.length} characters; ${MOST_CHARACTERS} are the most. Put what it does into a script of the project, and run that.`
  }
  if (/[\p{Cc}\u2028\u2029]/u.test(line)) {
    return 'has line breaks or other control characters; write one line, with && or ; between commands.'
  }
  if (/\p{Bidi_Control}/u.test(line)) return 'has characters that reorder it; write it without them.'
  if (isProse(line)) return `is prose, not a command. ${MEND}`
  const script = parse(line)
  const broken = errorsIn(script)
  if (broken !== null) return `cannot be read as a line for a shell (${broken}); mend its syntax, or simplify it.`
  const forbidden = commandsIn(script)
    .flatMap(namesOf)
    .find(name => ROOT.has(name))
  if (forbidden !== undefined) {
    return `uses \`${forbidden}\`; commands run in a sandbox, with no more rights than the person has. Leave it out.`
  }
  const verdict = verdictOfLine(script, made)
  return isWeak(verdict) ? `proves nothing: ${verdict.why}. ${MEND}` : null
}

const MEND = 'Name a command that fails as long as the work is not done, such as a test, `grep -q`, or `node -e`.'

/** What would run something as somebody else. */
const ROOT = new Set(['sudo', 'doas', 'su', 'pkexec', 'runuser', 'sudoedit', 'run0', 'gosu'])

/** Words by which sentences begin, and words that no command has among its own. */
const BEGINNINGS =
  /^(?:check|verify|ensure|confirm|make sure|manually|inspect|review|run|execute|start|open|look|see|test that|test if|test whether|the|it|all|there|this|when|if the|please|should|visit|use|compare|observe|validate|assert)\s/i
const FUNCTION_WORDS = /\b(?:the|that|is|are|should|must|works?|correctly|still|whether|without|when)\b/i
const PLAIN_WORD = /^["'(]?[\p{L}'’-]+["')]?[.,:;!?]?$/u

/** Whether a line is a sentence for people. A program of this name, with options or paths, is none. */
function isProse(line: string): boolean {
  const words = line.split(/\s+/)
  const [first = ''] = words
  if (/^[^\p{ASCII}]/u.test(first) && !first.includes('/')) return true
  if (/[&|;<>$=]/.test(line) && !/[.!?]$/.test(line)) return false
  const plain = words.filter(word => PLAIN_WORD.test(word) && !word.startsWith('-')).length
  const isMostlyPlain = plain >= words.length - Math.ceil(words.length / 4)
  if (words.length >= 3 && isMostlyPlain && BEGINNINGS.test(line) && (/^[A-Z]/.test(line) || FUNCTION_WORDS.test(line)))
    return true
  const hasOptions = words.some(word => /^--?\w/.test(word))
  if (words.length >= 3 && isMostlyPlain && !hasOptions && /^\p{Lu}\p{Ll}/u.test(first)) return true
  return words.length >= 4 && plain === words.length && FUNCTION_WORDS.test(words.slice(1).join(' '))
}

/** The first thing that is wrong with a script, or with one in it. */
function errorsIn(node: SyntaxNode): string | null {
  let found = node.type === 'Script' ? (node.errors?.[0]?.message ?? null) : null
  forEachChild(node, child => {
    found ??= errorsIn(child)
  })
  return found
}

/** All commands of a script, those that are put in and those of shells within it, too. */
function commandsIn(node: SyntaxNode, depth = 0): Command[] {
  const found: Command[] = node.type === 'Command' ? [node] : []
  if (
    node.type === 'Command' &&
    depth < MOST_SHELLS &&
    /^(?:.*\/)?(?:(?:ba|da|z|k|a)?sh|eval)$/.test(node.name?.value ?? '')
  ) {
    const scripts = node.args.flatMap(each =>
      each.type === 'Word' && /\s/.test(each.value) ? [parse(each.value)] : [],
    )
    found.push(...scripts.flatMap(script => commandsIn(script, depth + 1)))
  }
  forEachChild(node, child => {
    found.push(...commandsIn(child, depth))
  })
  return found
}

function namesOf({ name, args }: Command): string[] {
  const words = args.flatMap(each =>
    each.type === 'Word' ? [{ text: each.value, isLiteral: true, isReal: false }] : [],
  )
  return name === undefined ? [] : programNames(name.value, words)
}

function verdictOfLine(script: { commands: readonly Statement[] }, made: readonly string[]): Verdict {
  const reader = new Reader(made, 0)
  const verdict = reader.list(script.commands)
  return reader.spoilt === null ? verdict : always(reader.spoilt)
}

/** What a command reads, as `Call` has it. */
type Input = Pick<Call, 'input' | 'isPiped'>

const NO_INPUT: Input = { input: null, isPiped: false }

/** Reads a script in its order, and says what its exit code depends on. */
class Reader {
  /** Why nothing counts any more; null: it does. */
  spoilt: string | null = null
  readonly #made: readonly string[]
  readonly #depth: number
  /** Variables with something in them that was looked at. */
  readonly #real = new Set<string>()
  #last: Verdict = always('there is no command')
  #job: Verdict | null = null
  #stopsAtFailure = false
  #pipesFail = false

  constructor(made: readonly string[], depth: number) {
    this.#made = made
    this.#depth = depth
  }

  /** Commands one after the other: the last one counts, and those without which it is not reached. */
  list(statements: readonly Statement[]): Verdict {
    let needed: Verdict | null = null
    let result: Verdict = always('it holds no command')
    for (const statement of statements) {
      const verdict = this.#statement(statement)
      this.#last = verdict
      if (this.#stopsAtFailure || stopsAtFailure(statement)) needed = needed === null ? verdict : both(needed, verdict)
      result = needed === null ? verdict : both(needed, verdict)
      if (isExit(statement)) break
    }
    return result
  }

  #statement({ command, background }: Statement): Verdict {
    const verdict = command.type === 'AndOr' ? this.#andOr(command) : this.#pipeline(command)
    if (background !== true) return verdict
    this.#job = verdict
    return always('"&" leaves its command in the background, and loses its exit code')
  }

  #andOr({ commands, operators }: { commands: readonly PipelineNode[]; operators: readonly string[] }): Verdict {
    const [first, ...others] = commands
    let result = first === undefined ? always('it holds no command') : this.#pipeline(first)
    for (const [at, each] of others.entries()) {
      this.#last = result
      const next = this.#pipeline(each)
      if (operators[at] === '&&') result = both(result, next)
      else {
        const isLost = next.kind === 'always' && !isWeak(result)
        result = either(
          result,
          isLost ? always('what is behind "||" succeeds where the command before it fails') : next,
        )
      }
    }
    return result
  }

  #pipeline(node: PipelineNode): Verdict {
    if (node.type !== 'Pipeline') return this.#command(node, NO_INPUT)
    const isNegated = node.prefixes.filter(({ type }) => type === 'Negation').length % 2 === 1
    const verdict = this.#piped(node)
    return isNegated ? opposite(verdict) : verdict
  }

  #piped({ commands }: Pipeline): Verdict {
    let verdict: Verdict = always('it holds no command')
    let whole: Verdict | null = null
    let input: Input = NO_INPUT
    for (const command of commands) {
      verdict = this.#command(command, input)
      whole = whole === null ? verdict : both(whole, verdict)
      input = { input: this.#printedBy(command, input), isPiped: true }
    }
    return this.#pipesFail && whole !== null ? whole : verdict
  }

  /** What a command prints into a pipe. */
  #printedBy(node: CommandNode, { input }: Input): Call['input'] {
    const name = node.type === 'Command' ? (node.name?.value ?? '') : ''
    if (LISTS.has(name) || (name === 'git' && node.type === 'Command' && listsInGit(node))) return 'names'
    if (this.#looks(node)) return FILTERS.has(name) && input !== null ? input : 'real'
    return 'constant'
  }

  #command(node: CommandNode, input: Input): Verdict {
    switch (node.type) {
      case 'Command':
        return this.#simple(node, input)
      case 'Redirected':
        return this.#command(node.command, input)
      case 'Subshell':
      case 'BraceGroup':
        return this.list(node.body.commands)
      case 'If':
        return this.#if(node)
      case 'For':
        return this.#for(node.name, node.wordlist ?? [], node.body)
      case 'ArithmeticFor':
        return this.list(node.body.commands)
      case 'While':
        return this.#while(this.list(node.clause.commands), node)
      case 'Case':
        return this.#choice(
          this.#looksIn(node.word),
          node.items.map(({ body }) =>
            body.commands.length === 0 ? always('it does nothing') : this.list(body.commands),
          ),
        )
      case 'TestCommand':
        return this.#test(node.expression)
      case 'ArithmeticCommand':
        return this.#arithmetic(node)
      case 'Function':
        this.spoilt ??= 'it defines a function, which may have the name of any program; write its commands out'
        return always('a function is defined')
      case 'Select':
      case 'Coproc':
        return always('its exit code is lost')
    }
  }

  #arithmetic(node: ArithmeticCommand): Verdict {
    const names = node.body.match(/[A-Za-z_]\w*/g) ?? []
    return this.#looks(node) || names.some(name => this.#real.has(name))
      ? REAL
      : always('it reckons with nothing that the work makes')
  }

  #if({ clause, then, elif, else: otherwise }: If): Verdict {
    const [next, ...rest] = elif
    const condition = this.list(clause.commands)
    const yes = this.list(then.commands)
    const no =
      next === undefined
        ? otherwise === undefined
          ? always('"if" succeeds where what it asks is not so')
          : this.list(otherwise.commands)
        : this.#if({ ...next, type: 'If', elif: rest, else: otherwise })
    if (condition.kind === 'always') return yes
    if (condition.kind === 'never') return no
    if (no.kind === 'never') return both(condition, yes)
    return yes.kind === 'never' ? both(opposite(condition), no) : either(yes, no)
  }

  #for(name: Word, words: readonly Word[], body: CompoundList): Verdict {
    if (words.some(word => this.#looksIn(word) || word.parts?.some(({ type }) => type === 'Glob')))
      this.#real.add(name.value)
    return this.list(body.commands)
  }

  /** A loop is left when its condition is not so any more. */
  #while(condition: Verdict, { kind, body }: { kind: string; body: CompoundList }): Verdict {
    const inside = this.list(body.commands)
    if (condition.kind === 'real') return REAL
    const runs = (kind === 'while') === (condition.kind === 'always')
    return runs ? inside : always('its loop never runs, or ends with a success')
  }

  #choice(isReal: boolean, verdicts: readonly Verdict[]): Verdict {
    if (verdicts.some(({ kind }) => kind === 'real')) return REAL
    const canFail = verdicts.some(({ kind }) => kind === 'never')
    return isReal && canFail ? REAL : (verdicts.find(isWeak) ?? NEVER)
  }

  #test(expression: TestExpression): Verdict {
    switch (expression.type) {
      case 'TestLogical':
        return expression.operands.map(each => this.#test(each)).reduce(expression.operator === '&&' ? both : either)
      case 'TestNot': {
        const verdict = this.#test(expression.operand)
        return expression.negations.length % 2 === 1 ? opposite(verdict) : verdict
      }
      case 'TestGroup':
        return this.#test(expression.expression)
      case 'TestUnary':
        return verdictOfTest([literal(expression.operator), this.#argument(expression.operand)], this.#around)
      case 'TestBinary':
        return verdictOfTest(
          [this.#argument(expression.left), literal(expression.operator), this.#argument(expression.right)],
          this.#around,
        )
    }
  }

  #simple(node: Command, input: Input): Verdict {
    const { name, args, redirects } = node
    const assignments = [...node.prefix, ...args].flatMap(each => (each.type === 'Assignment' ? [each] : []))
    let assigned: Verdict = always('it holds no command')
    for (const { name: variable, value } of assignments) {
      if (this.#looksIn(value)) {
        this.#real.add(variable)
        assigned = REAL
      }
    }
    if (name === undefined) return assigned
    const program = this.#argument(name)
    if (!program.isLiteral && !program.text.includes('/')) return always(NAME_UNKNOWN)
    return verdictOfCall({
      name: program.isLiteral ? program.text : program.text.slice(program.text.lastIndexOf('/')),
      args: args.map(each => (each.type === 'Word' ? this.#argument(each) : literal(each.text))),
      ...this.#inputOf(redirects, input),
      around: this.#around,
    })
  }

  #inputOf(redirects: readonly Redirection[], input: Input): Input {
    const own = redirects.findLast(({ operator }) => operator.startsWith('<') && operator !== '<&')
    if (own === undefined) return input
    const isReal = own.type === 'Redirect' ? own.target?.value !== '/dev/null' : this.#looks(own)
    return { input: isReal ? 'real' : 'constant', isPiped: true }
  }

  #argument(word: Word): Argument {
    return { text: word.value, isLiteral: !hasExpansion(word), isReal: this.#looksIn(word) }
  }

  get #around(): Around {
    return {
      made: this.#made,
      last: this.#last,
      job: this.#job,
      script: text => {
        if (this.#depth >= MOST_SHELLS) return always('too many shells start one another')
        const inner = new Reader(this.#made, this.#depth + 1)
        const verdict = inner.list(parse(text).commands)
        return inner.spoilt === null ? verdict : always(inner.spoilt)
      },
      stopsAtFailure: stops => {
        this.#stopsAtFailure = stops
      },
      pipesFail: fail => {
        this.#pipesFail = fail
      },
      spoil: why => {
        this.spoilt ??= why
      },
    }
  }

  #looksIn(node: SyntaxNode): boolean {
    return this.#looks(node)
  }

  /** Whether what stands there comes from looking at something, and not only from the line itself. */
  #looks(node: SyntaxNode): boolean {
    if (node.type === 'Command' && node.name !== undefined && !PRINTS.has(node.name.value)) return true
    if (node.type === 'Redirect' && node.operator === '<' && node.target?.value !== '/dev/null') return true
    if (node.type === 'SimpleExpansion') return this.#isReal(node.text.slice(1))
    if (node.type === 'ParameterExpansion' && this.#isReal(node.parameter)) return true
    let found = false
    forEachChild(node, child => {
      found ||= this.#looks(child)
    })
    return found
  }

  #isReal(variable: string): boolean {
    return variable === '?' ? this.#last.kind === 'real' : this.#real.has(variable)
  }
}

/** Print names of files. */
const LISTS = new Set(['ls', 'find', 'fd', 'tree', 'dir', 'vdir', 'locate', 'du'])
/** Print what they read. */
const FILTERS = new Set(['cat', 'sort', 'uniq', 'head', 'tail', 'tac', 'tee', 'tr', 'cut', 'xargs', 'wc', 'grep'])
/** Print only what they are told. */
const PRINTS = new Set([
  'echo',
  'printf',
  'true',
  'false',
  ':',
  'yes',
  'seq',
  'date',
  'pwd',
  'sleep',
  'exit',
  'set',
  'test',
  '[',
])

function listsInGit({ args }: Command): boolean {
  return args.some(each => each.type === 'Word' && /^(?:status|ls-files|diff|ls-tree)$/.test(each.value))
}

function literal(text: string): Argument {
  return { text, isLiteral: true, isReal: false }
}

const EXPANSIONS: ReadonlySet<string> = new Set([
  'SimpleExpansion',
  'ParameterExpansion',
  'CommandExpansion',
  'ArithmeticExpansion',
  'ProcessSubstitution',
])

/** Whether the shell puts something in. */
function hasExpansion(node: SyntaxNode): boolean {
  if (EXPANSIONS.has(node.type)) return true
  let found = false
  forEachChild(node, child => {
    found ||= hasExpansion(child)
  })
  return found
}

/** `… || exit 1`, `if …; then exit 1; fi`, and groups that end so: what comes after them is reached only if they succeed. */
function stopsAtFailure({ command }: Statement): boolean {
  if (command.type === 'AndOr') return command.operators.at(-1) === '||' && endsInFailure(command.commands.at(-1))
  if (command.type !== 'If') return false
  return [command.then, ...(command.else === undefined ? [] : [command.else])].some(({ commands }) =>
    endsInFailure(commands.at(-1)?.command),
  )
}

function endsInFailure(node: SyntaxNode | undefined): boolean {
  if (node?.type === 'BraceGroup') return endsInFailure(node.body.commands.at(-1)?.command)
  return node?.type === 'Command' && node.name?.value === 'exit' && /^[1-9]/.test(firstArgument(node))
}

function isExit({ command, background }: Statement): boolean {
  return background !== true && command.type === 'Command' && /^(?:exit|return)$/.test(command.name?.value ?? '')
}

function firstArgument({ args: [first] }: Command): string {
  return first?.type === 'Word' ? first.value : ''
}
