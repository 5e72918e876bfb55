import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import packageJson from '../../package.json' with { type: 'json' }

/**
 * Directory of our own package: the nearest one at or above this module whose package.json has our name. The same from
 * `src/`, from the bundled `dist/` and from an installed copy.
 */
export const packageRoot = /* @__PURE__ */ findPackageRoot()

/** Returns the absolute path of a package file, given from the package root (`settings.js`). */
export function packageFile(path: string): string {
  return join(packageRoot, path)
}

/** Returns a command line for this codemachine that works with any PATH: absolute paths of Node and the program, quoted. */
export function ownCommandLine(): string {
  return [execPath, packageFile(join('dist', 'bin.js'))]
    .map(path => `"${path.replaceAll(/["$`]/g, special => `\\${special}`)}"`)
    .join(' ')
}

/** The text of `prompts/<name>.md` of our own package. */
export function loadPrompt(name: string): string {
  return readFileSync(packageFile(join('prompts', `${name}.md`)), 'utf8')
}

function findPackageRoot(): string {
  const start = import.meta.dirname
  for (let folder = start; ; folder = dirname(folder)) {
    if (packageName(join(folder, 'package.json')) === packageJson.name) return folder
    if (folder === dirname(folder)) throw new Error(`No package.json of codemachine at or above ${start}`)
  }
}

function packageName(path: string): unknown {
  if (!existsSync(path)) return null
  const content: unknown = JSON.parse(readFileSync(path, 'utf8'))
  return content !== null && typeof content === 'object' && 'name' in content ? content.name : null
}

/** The version of codemachine. */
export const version: string = packageJson.version

/** Put in by `scripts/build.ts`: the hash of our source. */
declare const CODEMACHINE_SOURCE: string | undefined

/** Tells this code from any other, and each process that runs from the source from all others: there it may have been edited. */
export const codeId: string =
  typeof CODEMACHINE_SOURCE === 'string' ? `${version} ${CODEMACHINE_SOURCE}` : crypto.randomUUID()
