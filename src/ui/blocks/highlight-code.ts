import type { Role, Theme } from '../theme.ts'

type Lowlight = ReturnType<typeof import('lowlight').createLowlight>
type Nodes = ReturnType<Lowlight['highlight']>['children']

let lowlight: Lowlight | null = null

/**
 * Reads the grammars of some forty languages, which takes a moment that nothing should wait for; until it resolves,
 * code is shown in one colour.
 */
export async function loadGrammars(): Promise<void> {
  const { createLowlight, common } = await import('./common-grammars.ts')
  lowlight ??= createLowlight(common)
}

// A grammar reads a line of any length with patterns that were not made for it.
const MOST_CHARACTERS = 16 * 1024
const LONGEST_LINE = 1000

/** Lines of code, each painted in itself; in the code's own colour if its language is not known. */
export function highlightCode(code: string, language: string, theme: Theme): string[] {
  const lines = code.split('\n')
  const isReadable = code.length <= MOST_CHARACTERS && lines.every(line => line.length <= LONGEST_LINE)
  if (!isReadable || !lowlight?.registered(language)) return lines.map(line => theme.paint('code', line))
  const painted = ['']
  paintNodes(lowlight.highlight(language, code).children, 'plain', (text, role) => {
    for (const [i, part] of text.split('\n').entries()) {
      if (i > 0) painted.push('')
      painted[painted.length - 1] += theme.paint(role, part)
    }
  })
  return painted
}

function paintNodes(nodes: Nodes, role: Role, paint: (text: string, role: Role) => void): void {
  for (const node of nodes) {
    if (node.type === 'text') paint(node.value, role)
    if (node.type === 'element') paintNodes(node.children as Nodes, roleOf(node.properties.className) ?? role, paint)
  }
}

const ROLES: Readonly<Record<string, Role>> = {
  keyword: 'keyword',
  'selector-tag': 'keyword',
  tag: 'keyword',
  built_in: 'type',
  type: 'type',
  'selector-class': 'type',
  'selector-id': 'type',
  literal: 'number',
  number: 'number',
  string: 'string',
  regexp: 'string',
  symbol: 'string',
  comment: 'comment',
  meta: 'comment',
  doctag: 'comment',
  title: 'name',
  name: 'name',
  attr: 'name',
  attribute: 'name',
  section: 'heading',
  addition: 'added',
  deletion: 'removed',
  emphasis: 'emphasis',
  strong: 'strong',
  subst: 'plain',
}

/** The role for a node's classes, of which the first is its kind: `hljs-title function_`. */
function roleOf(classes: unknown): Role | undefined {
  const [first] = Array.isArray(classes) ? classes : []
  return ROLES[String(first).replace('hljs-', '')]
}
