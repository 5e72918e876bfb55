import type { ProjectCommand } from '../../core/shapes/context.ts'
import type { Manifest } from './manifests.ts'
import { type Project, readProjectFile } from './project-file.ts'

type Kind = ProjectCommand['kind']

/**
 * Returns commands that seem to test, build, check or start a project, those of the top first; at most 30. They are built
 * from names in its manifests; no other text of a file goes into them.
 * @param paths all files
 */
export async function findCommands(
  project: Project,
  paths: readonly string[],
  manifests: readonly Manifest[],
): Promise<ProjectCommand[]> {
  const known = new Set(paths)
  const found = manifests.flatMap(manifest => {
    const folder = manifest.path.slice(0, manifest.path.lastIndexOf('/') + 1)
    if (!PLAIN_FOLDER.test(folder)) return []
    const place: Place = { folder, has: name => known.has(folder + name), paths, manifest }
    return commandsOf(place).map(([kind, run]) => ({ run: inFolder(folder, run), kind, from: manifest.path }))
  })
  found.push(...(await ofMakers(project, known)))
  const unique = new Map(found.map(command => [command.run, command]))
  return [...unique.values()]
    .map((command, index) => ({ command, rank: rankOf(command) * found.length + index }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST_COMMANDS)
    .map(({ command }) => command)
}

const MOST_COMMANDS = 30
/** Matches a folder that a command may have unquoted. */
const PLAIN_FOLDER = /^(?:[\w@.+][\w@.+-]*\/)*$/
const PLAIN_NAME = /^\w[\w:.@/-]{0,60}$/
const KINDS: readonly Kind[] = ['test', 'build', 'lint', 'run']

function rankOf({ kind, from }: ProjectCommand): number {
  return from.split('/').length * KINDS.length + KINDS.indexOf(kind)
}

function inFolder(folder: string, run: string): string {
  return folder === '' ? run : `cd ${folder.slice(0, -1)} && ${run}`
}

/** A folder with a manifest. */
interface Place {
  folder: string
  has(name: string): boolean
  paths: readonly string[]
  manifest: Manifest
}

type Found = readonly (readonly [Kind, string])[]

function commandsOf(place: Place): Found {
  switch (place.manifest.kind) {
    case 'npm':
      return ofNpm(place)
    case 'python':
    case 'requirements':
      return ofPython(place)
    case 'cargo':
      return [
        ['test', 'cargo test'],
        ['build', 'cargo build'],
      ]
    case 'go':
      return [
        ['test', 'go test ./...'],
        ['build', 'go build ./...'],
        ['lint', 'go vet ./...'],
      ]
    case 'maven':
      return [
        ['test', `${place.has('mvnw') ? './mvnw' : 'mvn'} -q test`],
        ['build', `${place.has('mvnw') ? './mvnw' : 'mvn'} -q compile`],
      ]
    case 'gradle':
      return [
        ['test', `${place.has('gradlew') ? './gradlew' : 'gradle'} test`],
        ['build', `${place.has('gradlew') ? './gradlew' : 'gradle'} assemble`],
      ]
    case 'gem':
      return ofGems(place)
    case 'composer':
      return ofComposer(place)
    case 'dotnet':
      return [
        ['test', 'dotnet test'],
        ['build', 'dotnet build'],
      ]
    case 'deno':
      return ofDeno(place)
    case 'mix':
      return [
        ['test', 'mix test'],
        ['build', 'mix compile'],
      ]
  }
}

function ofNpm({ has, manifest }: Place): Found {
  const { scripts, packageManager } = jsonOf(manifest)
  const asked = typeof packageManager === 'string' ? packageManager : ''
  const manager = MANAGERS.find(([name, lock]) => asked.startsWith(name) || has(lock))?.[0] ?? 'npm'
  return ofScripts(scripts, name => (manager === 'npm' && name === 'test' ? 'npm test' : `${manager} run ${name}`))
}

/** Returns the JSON object of a manifest; empty if it is not one. */
function jsonOf({ text }: Manifest): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Returns the commands of scripts whose names no shell changes. */
function ofScripts(scripts: unknown, run: (name: string) => string): [Kind, string][] {
  return Object.entries(Object(scripts)).flatMap(([name, command]): [Kind, string][] => {
    const kind = kindOfScript(name)
    const isNone = kind === null || !PLAIN_NAME.test(name) || !/string|object/.test(typeof command)
    return isNone || /no test specified/.test(String(command)) ? [] : [[kind, run(name)]]
  })
}

const MANAGERS = [
  ['pnpm', 'pnpm-lock.yaml'],
  ['yarn', 'yarn.lock'],
  ['bun', 'bun.lock'],
  ['bun', 'bun.lockb'],
] as const

/** Returns the purpose of a script or target by its name; null: none of these, or it runs forever. */
function kindOfScript(name: string): Kind | null {
  if (/(?:^|[:._-])(?:watch|dev-?server|open|ui|debug|publish|deploy|release|clean|install)(?:$|[:._-])/i.test(name))
    return null
  return NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? null
}

const NAMES: readonly (readonly [RegExp, Kind])[] = [
  [/^(?:unit-?|e2e-?|integration-?)?(?:tests?|specs?)(?:$|[:._-])|[:._-]tests?$|^(?:rspec|pytest|phpunit)$/i, 'test'],
  [
    /^(?:lint|check|typecheck|type-check|types|tsc|vet|format:check|fmt-check|analy[sz]e|stan|mypy|clippy)(?:$|[:._-])/i,
    'lint',
  ],
  [/^(?:build|compile|bundle|dist|all)(?:$|[:._-])/i, 'build'],
  [/^(?:start|dev|serve|run)$/i, 'run'],
]

function ofPython({ has, folder, paths, manifest }: Place): Found {
  const runner = has('uv.lock') ? 'uv run ' : has('poetry.lock') ? 'poetry run ' : ''
  const text = manifest.text.replace(/(?:^|\s)#.*$/gm, '')
  const uses = (name: string) => new RegExp(`(?:^|[\\s"'.])${name}\\b`, 'mi').test(text)
  const found: [Kind, string][] = []
  const isPytest = uses('pytest') || has('pytest.ini') || has('conftest.py') || has('tests/conftest.py')
  const hasTests = () => paths.some(path => path.startsWith(folder) && /(?:^|\/)test_\w+\.py$/.test(path))
  if (isPytest) found.push(['test', `${runner}python3 -m pytest`])
  else if (hasTests()) found.push(['test', `${runner}python3 -m unittest`])
  if (has('tox.ini') || /^\[tool\.tox\b/m.test(text)) found.push(['test', 'tox'])
  if (uses('ruff')) found.push(['lint', `${runner}ruff check .`])
  if (uses('mypy')) found.push(['lint', `${runner}mypy .`])
  if (/^\s*build-backend\s*=/m.test(text))
    found.push(['build', runner === 'poetry run ' ? 'poetry build' : runner === '' ? 'python3 -m build' : 'uv build'])
  return found
}

function ofGems({ has, manifest }: Place): Found {
  const uses = (name: string) => new RegExp(`^ {0,20}gem[ (]{1,20}["']${name}["']`, 'm').test(manifest.text)
  const found: [Kind, string][] = []
  if (uses('rspec(?:-rails)?') || has('.rspec')) found.push(['test', 'bundle exec rspec'])
  else if (has('Rakefile')) found.push(['test', 'bundle exec rake test'])
  if (uses('rubocop')) found.push(['lint', 'bundle exec rubocop'])
  return found
}

function ofComposer({ manifest }: Place): Found {
  const scripts = ofScripts(jsonOf(manifest).scripts, name => `composer run-script ${name}`)
  const isTold = scripts.some(([kind]) => kind === 'test')
  return isTold || !manifest.text.includes('"phpunit/phpunit"') ? scripts : [...scripts, ['test', 'vendor/bin/phpunit']]
}

function ofDeno({ manifest }: Place): Found {
  const tasks = ofScripts(jsonOf(manifest).tasks, name => `deno task ${name}`)
  return tasks.some(([kind]) => kind === 'test') ? tasks : [...tasks, ['test', 'deno test']]
}

/** Files with targets, the program for them, and the pattern of a target's line. */
const MAKERS = [
  { files: ['GNUmakefile', 'makefile', 'Makefile'], run: 'make', target: /^([\w][\w./-]{0,60})\s*:(?![=:])/ },
  {
    files: ['justfile', 'Justfile', '.justfile'],
    run: 'just',
    target: /^@?([\w][\w-]{0,60})(?:\s+[\w+*="'. -]{0,100})?:(?!=)/,
  },
  { files: ['Taskfile.yml', 'Taskfile.yaml'], run: 'task', target: /^ {2}([\w][\w:-]{0,60}):\s*$/ },
  { files: ['Rakefile'], run: 'rake', target: /^\s*task\s+:?["']?(\w{1,60})/ },
] as const

const MOST_BYTES = 256 * 1024
/** Most targets of one file. */
const MOST_TARGETS = 100

async function ofMakers(project: Project, known: ReadonlySet<string>): Promise<ProjectCommand[]> {
  const found: ProjectCommand[] = []
  for (const { files, run, target } of MAKERS) {
    const from = files.find(name => known.has(name))
    const file = from === undefined ? null : await readProjectFile(project, from, MOST_BYTES)
    if (from === undefined || file?.kind !== 'text') continue
    let left = MOST_TARGETS
    for (const line of file.text.split('\n')) {
      const name = target.exec(line.slice(0, 200))?.[1]
      const kind = name === undefined ? null : kindOfScript(name)
      if (kind === null) continue
      found.push({ run: `${run} ${name}`, kind, from })
      left -= 1
      if (left === 0) break
    }
  }
  return found
}
