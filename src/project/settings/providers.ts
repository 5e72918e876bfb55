import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import { CODEX_PROVIDER, type Provider, type ProvidersByName } from '../../core/shapes/provider.ts'
import { type Layer, PROVIDERS, shortened, type WrittenField, wrongValue } from './entries.ts'
import { line, oneOf, providerName, tokensBetween, variableName, webAddress } from './schema.ts'

/** The providers that are there without a table. */
const BUILT_IN: ProvidersByName = new Map(
  [['ollama', 'http://127.0.0.1:11434/v1'] as const, ['lmstudio', 'http://127.0.0.1:1234/v1'] as const].map(
    ([name, baseUrl]) => [
      name,
      { name, baseUrl, model: null, keyEnv: null, contextWindow: null, whenAway: 'wait' } satisfies Provider,
    ],
  ),
)

/** The names of those that are there without a table: servers of models on one's own machine. */
export const LOCAL_PROVIDERS: readonly string[] = [...BUILT_IN.keys()]

/** Whether a provider is there without a table, and nobody has written anything of it. */
export function isBuiltIn(provider: Provider): boolean {
  return BUILT_IN.get(provider.name) === provider
}

/**
 * The providers of the person's file and environment, and those that are always there. Of a field in both places that of the
 * environment counts. Throws a `UserError` of one sentence, with the place, for the first mistake; no value of an address
 * or of `key_env` is in it, for either may hold a secret by mistake.
 */
export function effectiveProviders(written: readonly WrittenField[], env: NodeJS.ProcessEnv): ProvidersByName {
  const tables = new Map<string, Table>()
  const fields = [...written, ...fieldsOfEnvironment(env, [...BUILT_IN.keys(), ...written.map(({ table }) => table)])]
  for (const field of fields) {
    const table = tables.get(field.table) ?? { place: field.place, values: {} }
    tables.set(field.table, { ...table, values: { ...table.values, ...fieldIn(field) } })
  }
  const providers = new Map(BUILT_IN)
  for (const [name, table] of tables) providers.set(name, providerOf(name, table))
  return providers
}

/** Throws a `UserError` if no provider has this name; `place`: where it was said. */
export function checkProvider(name: string, place: string, providers: ProvidersByName): void {
  if (name === CODEX_PROVIDER || providers.has(name)) return
  const known = [CODEX_PROVIDER, ...providers.keys()]
  const near = nearestName(name, known)
  const mend = near === null ? `there are ${known.join(', ')}` : `did you mean "${near}"`
  throw new UserError(
    `${place}: there is no provider "${name}"; ${mend}${near === null ? `, and what tables [${PROVIDERS}.NAME] of your own config.toml name.` : '?'}`,
  )
}

interface Table {
  /** Of its first field. */
  place: string
  values: Partial<Fields>
}

interface Fields {
  base_url: string
  model: string
  key_env: string
  context_window: number
  when_away: Provider['whenAway']
}

const CHECKS: { readonly [Name in keyof Fields]: v.GenericSchema<unknown, Fields[Name]> } = {
  base_url: v.pipe(webAddress, v.description('an http or https URL, such as "http://127.0.0.1:11434/v1"')),
  model: line('the name of a model, such as "qwen3-coder:30b"', 500),
  key_env: variableName,
  context_window: tokensBetween(1000, 100_000_000, 'a number of tokens from 1000 to 100M, such as 32768 or "128k"'),
  when_away: oneOf(['wait', 'remote', 'stop']),
}

/** The field with its value, checked. */
function fieldIn(field: WrittenField): Partial<Fields> {
  const { table, key, value, place } = field
  if (!v.is(providerName, table) || table === CODEX_PROVIDER) {
    const why = table === CODEX_PROVIDER ? 'is what codex is configured with itself' : 'is no name for a provider'
    throw new UserError(
      `${place}: "${shortened(table)}" ${why}; use lower-case letters, digits, "-" and "_", such as [${PROVIDERS}.local].`,
    )
  }
  if (!isField(key)) return refuseUnknown(field)
  const problem = problemOf(key, field)
  if (problem !== null) throw new UserError(`${subjectOf(field)} ${problem}`)
  const read = v.parse(CHECKS[key], value)
  return { [key]: key === 'base_url' ? String(read).replace(/\/+$/, '') : read }
}

function isField(key: string): key is keyof Fields {
  return Object.hasOwn(CHECKS, key)
}

/** The end of a sentence about a value that cannot be used; null if it can. */
function problemOf(key: keyof Fields, { value, written }: WrittenField): string | null {
  const schema: v.GenericSchema = CHECKS[key]
  if (!v.is(schema, value)) return wrongValue(schema, written)
  return key === 'base_url' ? problemOfAddress(String(value)) : null
}

function problemOfAddress(text: string): string | null {
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    return 'has a user or a password in it (not shown); take them out, put the key into an environment variable, and name that one with key_env.'
  }
  if (!/[?#]/.test(text)) return null
  return 'has a "?" or "#" in it (not shown); name the address below which /models and /responses lie, such as "http://127.0.0.1:11434/v1".'
}

function refuseUnknown(field: WrittenField): never {
  const { key, place, table } = field
  if (key === 'wire_api') {
    throw new UserError(
      `${subjectOf(field)} cannot be chosen: codex speaks the Responses API alone, and no server that has only "chat"; leave it out.`,
    )
  }
  const known = Object.keys(CHECKS)
  const near = nearestName(key, known)
  const mend = near === null ? `those of a provider are ${known.join(', ')}.` : `did you mean "${near}"?`
  throw new UserError(`${place}: unknown key "${PROVIDERS}.${table}.${shortened(key)}"; ${mend}`)
}

/** The start of a message: in a file its place and key, else the variable. */
function subjectOf({ table, key, place, layer }: WrittenField): string {
  return layer === 'environment' ? place : `${place}: ${PROVIDERS}.${table}.${key}`
}

function providerOf(name: string, { place, values }: Table): Provider {
  const usual = BUILT_IN.get(name)
  const baseUrl = values.base_url ?? usual?.baseUrl
  if (baseUrl === undefined) {
    throw new UserError(
      `${place}: the provider ${name} has no base_url; name its address, such as base_url = "http://127.0.0.1:8080/v1".`,
    )
  }
  return {
    name,
    baseUrl,
    model: values.model ?? null,
    keyEnv: values.key_env ?? null,
    contextWindow: values.context_window ?? null,
    whenAway: values.when_away ?? 'wait',
  }
}

const PREFIX = 'CODEMACHINE_PROVIDERS_'

/** What variables say: `CODEMACHINE_PROVIDERS_LOCAL_BASE_URL`. An empty one counts as not set. */
function fieldsOfEnvironment(env: NodeJS.ProcessEnv, known: readonly string[]): WrittenField[] {
  return Object.entries(env).flatMap(([variable, text]) => {
    if (!variable.startsWith(PREFIX) || !text) return []
    const rest = variable.slice(PREFIX.length)
    const key = Object.keys(CHECKS).find(each => rest.endsWith(`_${each.toUpperCase()}`))
    if (key === undefined) {
      const ends = Object.keys(CHECKS).map(each => `_${each.toUpperCase()}`)
      throw new UserError(`${variable}: no field of a provider is called so; the names end in ${ends.join(', ')}.`)
    }
    const inCapitals = rest.slice(0, -key.length - 1)
    const table = known.find(name => variableOf(name) === inCapitals) ?? inCapitals.toLowerCase()
    return [{ table, key, value: text, written: JSON.stringify(text), place: variable, layer: 'environment' as Layer }]
  })
}

function variableOf(name: string): string {
  return name.toUpperCase().replaceAll('-', '_')
}
