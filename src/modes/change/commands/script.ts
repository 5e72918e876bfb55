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
  type Script,
  type Statement,
  type SyntaxNode,
  type TestExpression,
  type Word,
} from 'unbash'
import { verdictOfTest } from './file-checks.ts'
import { NAME_UNKNOWN, programNames, verdictOfCall } from './programs.ts'
import {
  type Argument,
  type Around,
  always,
  both,
  type Call,
  either,
  isWeak,
  literal,
  NEVER,
  opposite,
  REAL,
  type Verdict,
} from './verdict.ts'

/** How deep a shell may be given a line for another shell. */
const MOST_SHELLS = 5

/** The first syntax error of a script, or of one in it; null if there is none. */
export function syntaxErrorIn(node: SyntaxNode): string | null {
  let found = node.type === 'Script' ? (node.errors?.[0]?.message ?? null) : null
  forEachChild(node, child => {
    found ??= syntaxErrorIn(child)
  })
  return found
}

/**
 * What the exit code of a script depends on. Pure.
 * @param made files that the change makes
 * @param depth how many shells around it were given it
 */
export function verdictOfScript(script: Script, made: readonly string[], depth = 0): Verdict {
  const reader = new Reader(made, depth)
  const verdict = reader.list(script.commands)
  return reader.spoilt === null ? verdict : always(reader.spoilt)
}

/** The programs that a script calls by name, those behind `env` and the like, in `$(…)` and in scripts for shells within it, too. */
export function programsIn(script: SyntaxNode): string[] {
  return commandsIn(script).flatMap(namesOf)
}

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
          this.#looks(node.word),
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
    if (words.some(word => this.#looks(word) || word.parts?.some(({ type }) => type === 'Glob')))
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
      if (this.#looks(value)) {
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
    return { text: word.value, isLiteral: !hasExpansion(word), isReal: this.#looks(word) }
  }

  get #around(): Around {
    return {
      made: this.#made,
      last: this.#last,
      job: this.#job,
      script: text => {
        if (this.#depth >= MOST_SHELLS) return always('too many shells start one another')
        return verdictOfScript(parse(text), this.#made, this.#depth + 1)
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
