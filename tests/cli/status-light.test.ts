import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

test('status loads what reads YAML only where there is a session', async () => {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/cli/commands/look.ts'],
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: ['react-devtools-core'],
    write: false,
    metafile: true,
  })
  const loadedWith = (output: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(output)) return seen
    seen.add(output)
    for (const { path, kind } of metafile.outputs[output]?.imports ?? []) {
      if (kind === 'import-statement') loadedWith(path, seen)
    }
    return seen
  }
  const inputsOf = (outputs: Iterable<string>) =>
    [...outputs].flatMap(each => Object.keys(metafile.outputs[each]?.inputs ?? {}))
  const ofYaml = (inputs: readonly string[]) => inputs.filter(each => each.includes('node_modules/gray-matter/'))
  expect(ofYaml(inputsOf(Object.keys(metafile.outputs)))).not.toEqual([])
  expect(ofYaml(inputsOf(loadedWith('dist/look.js')))).toEqual([])
})
