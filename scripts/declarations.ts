import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SPECIFIER = /(from |import\()(['"])([^'"]+)\2/g

/**
 * What is shipped in place of declarations that need valibot, which is bundled: of a schema, what it is a schema of. By the
 * package, or the file of ours.
 */
const STAND_INS: Readonly<Record<string, string>> = {
  'valibot.d.ts': `/** A schema: what it takes, and what it gives. */
export interface GenericSchema<Input = unknown, Output = Input> {
    readonly '~types'?: { readonly input: Input; readonly output: Output } | undefined;
}
/** Of a field that may be left out. */
export interface ExactOptionalSchema<S extends GenericSchema, Default> extends GenericSchema<InferOutput<S>> {
    readonly default?: Default;
}
export type InferOutput<S extends GenericSchema> = NonNullable<S['~types']>['output'];
`,
  'core/events/schema.d.ts': `import type { GenericSchema } from '../../valibot.ts';
export type Schema<T> = GenericSchema<unknown, T>;
`,
}

/**
 * Writes the types of `src/index.ts`: `index.d.ts` into `folder`, and what it imports, and no more, into its folder `types`.
 * Throws for a type that a package of ours is needed for: packages are bundled, and whoever imports codemachine has none.
 */
export async function writeDeclarations(folder: string): Promise<void> {
  const made = await mkdtemp(join(tmpdir(), 'codemachine-types-'))
  try {
    await declare(made)
    const seen = new Set(['index.d.ts'])
    for (const path of seen) {
      const declared = STAND_INS[path] ?? (await readFile(join(made, 'src', path), 'utf8'))
      const valibot = relative(dirname(path), 'valibot.ts')
      const text = declared.replaceAll(/(from |import\()(['"])valibot\2/g, `$1$2${valibot}$2`)
      for (const [, , , specifier = ''] of text.matchAll(SPECIFIER)) {
        if (specifier.startsWith('.')) seen.add(join(dirname(path), specifier).replace(/\.[jt]s$/, '.d.ts'))
        else if (!specifier.startsWith('node:')) throw new Error(`${path} needs ${specifier}, which is not shipped.`)
      }
      const target = join(folder, shippedAs(path))
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, forConsumers(path, text))
    }
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** The declarations of everything that the library is made of. */
async function declare(folder: string): Promise<void> {
  const config = join(folder, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: folder,
    rootDir: ROOT,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  }
  const settings = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions,
    include: [],
    files: [join(ROOT, 'src/index.ts')],
  }
  await writeFile(config, JSON.stringify(settings))
  const tsc = fileURLToPath(import.meta.resolve('typescript/package.json')).replace('package.json', 'bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', config])
}

function shippedAs(path: string): string {
  return path === 'index.d.ts' ? path : join('types', path)
}

/** Imports as they are found from where the file is shipped, of the JavaScript that there would be. */
function forConsumers(path: string, text: string): string {
  const from = dirname(shippedAs(path))
  const imported = text.replace(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
    if (!specifier.startsWith('.')) return whole
    const to = relative(from, shippedAs(join(dirname(path), specifier).replace(/\.ts$/, '.js')))
    return `${before}${quote}${to.startsWith('.') ? to : `./${to}`}${quote}`
  })
  return path === 'index.d.ts' ? `/// <reference types="node" />\n${imported}` : imported
}
