import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import { CODEX_PROVIDER, type Provider, type ProvidersByName } from '../../core/shapes/provider.ts'
import { valueProblem } from '../../platform/toml-check.ts'
import { providerSchema, providerTable } from './schema.ts'
import type { SettingsFile } from './settings-file.ts'

/** Built-in providers, which need no table. */
const BUILT_IN: ProvidersByName = new Map(
  [['ollama', 'http://127.0.0.1:11434/v1'] as const, ['lmstudio', 'http://127.0.0.1:1234/v1'] as const].map(
    ([name, baseUrl]) => [
      name,
      { name, baseUrl, model: null, keyEnv: null, contextWindow: null, whenAway: 'wait' } satisfies Provider,
    ],
  ),
)

/** Names of the built-in providers: model servers on the person's own machine. */
export const LOCAL_PROVIDERS: readonly string[] = [...BUILT_IN.keys()]

/** Returns whether a provider is built in and nobody configured it. */
export function isBuiltIn(provider: Provider): boolean {
  return BUILT_IN.get(provider.name) === provider
}

/**
 * Returns the providers of the person's file and environment, and the built-in ones. The environment's fields win. Throws a
 * `UserError` of one sentence, with the place, for the first mistake. It shows no value of an address or `key_env`, because
 * either may hold a secret by mistake.
 */
export function effectiveProviders({ value, placeOf }: SettingsFile, env: NodeJS.ProcessEnv): ProvidersByName {
  const written = Object.entries(value.providers ?? {})
  const tables = new Map(written.map(([name, fields]) => [name, { place: placeOf('providers', name), fields }]))
  for (const { table, place, fields } of fieldsOfEnvironment(env, [...BUILT_IN.keys(), ...tables.keys()])) {
    const there = tables.get(table)
    tables.set(table, { place: there?.place ?? place, fields: { ...there?.fields, ...fields } })
  }
  const providers = new Map(BUILT_IN)
  for (const [name, { place, fields }] of tables) providers.set(name, providerOf(name, place, fields))
  return providers
}

/** Throws a `UserError` if no provider has this name; `place`: where it was written. */
export function checkProvider(name: string, place: string, providers: ProvidersByName): void {
  if (name === CODEX_PROVIDER || providers.has(name)) return
  const known = [CODEX_PROVIDER, ...providers.keys()]
  const near = nearestName(name, known)
  const mend = near === null ? `there are ${known.join(', ')}` : `did you mean "${near}"`
  throw new UserError(
    'CM0307',
    `${place}: there is no provider "${name}"; ${mend}${near === null ? `, and the tables [providers.NAME] of your own config.toml.` : '?'}`,
  )
}

type Fields = v.InferOutput<typeof providerSchema>

function providerOf(name: string, place: string, values: Fields): Provider {
  const usual = BUILT_IN.get(name)
  const baseUrl = values.base_url ?? usual?.baseUrl
  if (baseUrl === undefined) {
    throw new UserError(
      'CM0307',
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

/** Returns the values of variables such as `CODEMACHINE_PROVIDERS_LOCAL_BASE_URL`. An empty one counts as not set. */
function fieldsOfEnvironment(env: NodeJS.ProcessEnv, known: readonly string[]) {
  return Object.entries(env).flatMap(([place, text]) => {
    if (!place.startsWith(PREFIX) || !text) return []
    const rest = place.slice(PREFIX.length)
    const entries = Object.entries(providerSchema.entries)
    const [key, schema] = entries.find(([each]) => rest.endsWith(`_${each.toUpperCase()}`)) ?? []
    if (key === undefined || schema === undefined) {
      const ends = entries.map(([each]) => `_${each.toUpperCase()}`)
      throw new UserError(
        'CM0307',
        `${place}: this variable sets no field of a provider; its name must end in ${ends.join(', ')}.`,
      )
    }
    const inCapitals = rest.slice(0, -key.length - 1)
    const table = known.find(name => variableOf(name) === inCapitals) ?? inCapitals.toLowerCase()
    const problem = v.is(providerTable, table)
      ? valueProblem(schema.wrapped, text, JSON.stringify(text))
      : `names no provider; use ${v.getDescription(providerTable)}`
    if (problem !== null) throw new UserError('CM0202', `${place} ${problem}.`)
    return [{ table, place, fields: { [key]: v.parse(schema, text) } as Fields }]
  })
}

function variableOf(name: string): string {
  return name.toUpperCase().replaceAll('-', '_')
}
