import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Plugin, rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Declarations in place of those of valibot, which is bundled: of a schema, what it is a schema of. By the file below `src`. */
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
  'core/events/schema.d.ts': `import type { GenericSchema } from 'valibot';
export type Schema<T> = GenericSchema<unknown, T>;
`,
}

/**
 * Writes the types of `src/index.ts` and all that they need, and no more, into `folder`, as one file. Throws for a type that
 * needs a package: packages are bundled, and a program that imports codemachine has none.
 */
export async function writeDeclarations(folder: string): Promise<void> {
  const made = await mkdtemp(join(tmpdir(), 'codemachine-types-'))
  try {
    await declare(made)
    for (const [path, text] of Object.entries(STAND_INS)) await writeFile(join(made, 'src', path), text)
    const bundle = await rolldown({
      input: join(made, 'src/index.d.ts'),
      plugins: [packages(join(made, 'src/valibot.d.ts')), dts({ dtsInput: true, oxc: true, tsconfig: false })],
    })
    const { output } = await bundle.generate()
    await bundle.close()
    await writeFile(join(folder, 'index.d.ts'), `/// <reference types="node" />\n${output[0].code}`)
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** Finds what is imported by a package's name: valibot by its stand-in, Node's own outside. */
function packages(valibot: string): Plugin {
  return {
    name: 'packages',
    resolveId(name, importer) {
      if (name === 'valibot') return valibot
      if (name.startsWith('node:')) return { id: name, external: true }
      if (name.startsWith('.') || isAbsolute(name)) return null
      throw new Error(`${importer} needs ${name}, which is not shipped.`)
    },
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
