import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** Bundles the program of these tests; resolves with the file to run. */
export async function bundleProgram(directory: string): Promise<string> {
  const outfile = join(directory, 'program.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('program.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    jsx: 'automatic',
    alias: { 'react-devtools-core': 'node:events' },
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)" },
    logLevel: 'error',
  })
  return outfile
}
