/** What each declaration of a protocol file says, as lines: a field with its type, a member of a union, an entry. */
type Declarations = ReadonlyMap<string, ReadonlyMap<string, string>>

/**
 * What differs between two texts of protocol/codex.ts, one line each, by the names of types and fields; comments do not
 * count. `committed` is the text that was kept, `generated` what the installed codex says now.
 */
export function driftBetween(committed: string, generated: string): string[] {
  const [before, after] = [declarationsOf(committed), declarationsOf(generated)]
  const names = [...new Set([...before.keys(), ...after.keys()])].sort()
  return names.flatMap(name => {
    const [old, now] = [before.get(name), after.get(name)]
    if (old === undefined) return [`added: ${name}`]
    if (now === undefined) return [`removed: ${name}`]
    return fieldDrift(name, old, now)
  })
}

function fieldDrift(name: string, old: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): string[] {
  const fields = [...new Set([...old.keys(), ...now.keys()])]
  return fields.flatMap(field => {
    const [was, is] = [old.get(field), now.get(field)]
    if (was === is) return []
    if (was === undefined) return [`added: ${name} ${field} ${is}`.trimEnd()]
    if (is === undefined) return [`removed: ${name} ${field} ${was}`.trimEnd()]
    return [`changed: ${name} ${field} ${was} -> ${is}`]
  })
}

const DECLARATION = /^export (?:type|const) (\w+)(?:: [^=]+)? =([\s\S]*?)(?=^export |$(?![\s\S]))/gm

function declarationsOf(text: string): Declarations {
  const bare = text.replace(/\/\*\*[\s\S]*?\*\/|^\/\/.*$/gm, '')
  return new Map([...bare.matchAll(DECLARATION)].map(match => [match[1] ?? '', fieldsOf(match[2] ?? '')]))
}

/** A name or a literal, with its colon if it is the key of a field; or one character. */
const TOKEN = /(?:'[^']*'|[\w$]+)(?:\??:)?|\S/g

/**
 * Reads `{ a: T; b?: { c: U } } | 'x'` into `a:` → `T`, `b?:` → `{…}`, `b?.c:` → `U`, `'x'` and `=` → `{…} |`. An object
 * with a literal `type`, `method` or `mode` is named by it, as the members of the protocol's unions are.
 */
function fieldsOf(type: string): Map<string, string> {
  const fields = new Map<string, string>()
  const root = { prefix: '', key: '=' }
  const open = [root]
  for (const token of type.match(TOKEN) ?? []) {
    const object = open.at(-1) ?? root
    const path = object.prefix + object.key
    if (token === '{') open.push({ prefix: path === '=' ? '' : `${path.slice(0, -1)}.`, key: '[]:' })
    if (token === '}') open.pop()
    else if (token.endsWith(':')) object.key = token
    else if (/^(type|method|mode):'/.test(object.key + token)) object.prefix += `${token.slice(1, -1)}.`
    else if (path === '=' && token.startsWith("'")) fields.set(token, '')
    else if (!/[;,]/.test(token)) append(fields, path, token.replace('{', '{…}'))
  }
  return fields
}

function append(fields: Map<string, string>, path: string, token: string): void {
  const value = fields.get(path)
  fields.set(path, value === undefined ? token : `${value} ${token}`)
}
