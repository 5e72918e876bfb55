import { type AST, getStaticTOMLValue } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'

/** The name of the tables that say what has to pass before done. */
export const GATES = 'gates'

/** How a gate is written, the end of a sentence. */
export const HOW_TO_BEGIN = `begin each gate with a line [[${GATES}]], and write run = "…" below it.`

/** One gate as it stands in a TOML file: by line, from 1, what is said of it. */
export interface WrittenGate {
  line: number
  fields: readonly { key: string; line: number; value: unknown; written: string }[]
}

type TopNode = AST.TOMLKeyValue | AST.TOMLTable

/** Whether something at the top of a TOML file belongs to the gates. */
export function tellsOfGates(node: TopNode): boolean {
  return getStaticTOMLValue(node.key)[0] === GATES
}

/** The gates of a TOML file in their order, unchecked. A `UserError` if they are not written as tables of a list. */
export function gatesOfToml(file: { name: string; text: string; program: AST.TOMLProgram }): WrittenGate[] {
  return file.program.body[0].body.filter(tellsOfGates).flatMap(node => {
    const { line } = node.loc.start
    const path = getStaticTOMLValue(node.key)
    if (node.type === 'TOMLKeyValue') {
      const tables = path.length === 1 ? inlineTables(node.value) : null
      if (tables === null) return refuseShape(`${file.name}:${line}`, path)
      return tables.map(table => gateOf(file.text, table.loc.start.line, table.body))
    }
    if (path.length > 1 || node.kind !== 'array') return refuseShape(`${file.name}:${line}`, path)
    return [gateOf(file.text, line, node.body)]
  })
}

/** `[{ run = "npm test" }]`; null if it is anything else. */
function inlineTables(value: AST.TOMLContentNode): AST.TOMLInlineTable[] | null {
  if (value.type !== 'TOMLArray') return null
  const tables = value.elements.filter(element => element.type === 'TOMLInlineTable')
  return tables.length === value.elements.length ? tables : null
}

function gateOf(text: string, line: number, body: readonly AST.TOMLKeyValue[]): WrittenGate {
  const fields = body.map(({ key, value, loc }) => ({
    key: getStaticTOMLValue(key).join('.'),
    line: loc.start.line,
    value: getStaticTOMLValue(value),
    written: value.type === 'TOMLInlineTable' ? 'a table' : text.slice(...value.range),
  }))
  return { line, fields }
}

function refuseShape(place: string, path: readonly string[]): never {
  const what = path.length === 1 ? `${GATES} is a list of tables` : `${path.join('.')} is in no gate`
  throw new UserError(`${place}: ${what}; ${HOW_TO_BEGIN}`)
}
