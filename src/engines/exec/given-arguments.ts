/** Options of `codex exec` that only change its output, and if each has a value. */
const OPTIONS = new Map<string, 'flag' | readonly string[]>([
  ['--skip-git-repo-check', 'flag'],
  ['--strict-config', 'flag'],
  ['--color', ['always', 'never', 'auto']],
])

/** Keys of codex's configuration that only change how the model thinks and what it sees of its own work. */
const KEYS: ReadonlySet<string> = new Set([
  'model_auto_compact_token_limit',
  'model_context_window',
  'model_max_output_tokens',
  'model_reasoning_effort',
  'model_reasoning_summary',
  'model_supports_reasoning_summaries',
  'model_verbosity',
  'hide_agent_reasoning',
  'personality',
  'project_doc_max_bytes',
  'show_raw_agent_reasoning',
  'tool_output_token_limit',
])

/**
 * Returns the first argument for `codex exec` that only the person may give, such as `--sandbox` or `-c notify`; null: all
 * are allowed. Refuses everything not known to be harmless: sandbox, approvals, directory, profile, providers, the model
 * (its step names it), programs that codex starts, output and storage. Pure.
 */
export function refusedArgument(args: readonly string[]): string | null {
  const given = new Set<string>()
  for (let at = 0; at < args.length; at++) {
    const { name, value } = cut(args[at] ?? '')
    const option = name === '-c' ? 'pair' : OPTIONS.get(name)
    if (option === undefined || (option === 'flag' && value !== null) || given.has(name)) return shown(name)
    if (option === 'flag') {
      given.add(name)
      continue
    }
    const its = value ?? args[++at] ?? ''
    if (option === 'pair') {
      const key = its.split('=', 1)[0]?.trim() ?? ''
      if (!its.includes('=') || !KEYS.has(key) || hasControl(its)) return shown(`-c ${key}`)
      continue
    }
    given.add(name)
    if (!option.includes(its)) return name
  }
  return null
}

/** Removes flags that codemachine gives itself: `codex exec` accepts a flag only once. */
export function withoutOwn(args: readonly string[]): readonly string[] {
  return args.filter(each => each !== '--skip-git-repo-check')
}

/** Splits an argument into its option in the usual form and an attached value; null: no value. */
function cut(argument: string): { name: string; value: string | null } {
  const short = /^-([a-zA-Z])=?(.+)$/s.exec(argument)
  if (short !== null) return { name: `-${short[1]}`, value: short[2] ?? null }
  const at = argument.startsWith('--') ? argument.indexOf('=') : -1
  const name = at < 0 ? argument : argument.slice(0, at)
  return { name: name === '--config' ? '-c' : name, value: at < 0 ? null : argument.slice(at + 1) }
}

function hasControl(value: string): boolean {
  return /\p{Cc}/u.test(value)
}

const MOST_NAME = 60

function shown(name: string): string {
  const line = name.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  if (line === '') return '""'
  return line.length <= MOST_NAME ? line : `${line.slice(0, MOST_NAME - 1).toWellFormed()}…`
}
