import { readFile, rm } from 'node:fs/promises'
import { build, type Plugin } from 'esbuild'

/**
 * What every start, `--version` and `--help` too, would load for nothing: `node:process` as a module brings half of
 * Node's own library with it, and commander needs `node:child_process` for a kind of command that we do not have.
 */
const lightStart: Plugin = {
  name: 'light-start',
  setup(builds) {
    builds.onResolve({ filter: /^node:(process|child_process)$/ }, ({ path, importer }) =>
      /[\\/](commander[\\/]|src[\\/]bin\.ts$)/.test(importer) ? { path, namespace: 'light-start' } : null,
    )
    builds.onLoad({ filter: /./, namespace: 'light-start' }, ({ path }) => ({
      contents: `export default ${path === 'node:process' ? 'globalThis.process' : '{}'}`,
    }))
  },
}

/** Ink looks for its developer tools where the person's own environment says `DEV=true`, and complains without them. */
const withoutDeveloperTools: Plugin = {
  name: 'without-developer-tools',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]ink[\\/]build[\\/](reconciler|ink)\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(`process.env['DEV'] === 'true'`, 'false'),
    }))
  },
}

// One bundle in a few chunks: a start reads four files instead of four hundred, which is most of its time and memory.
await rm('dist', { recursive: true, force: true })
await build({
  entryPoints: { bin: 'src/bin.ts', entry: 'src/cli/entry.ts' },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.12',
  external: ['./entry.js'],
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"' },
  minifySyntax: true,
  legalComments: 'linked',
  plugins: [lightStart, withoutDeveloperTools],
  logLevel: 'warning',
  // What CommonJS dependencies expect to find.
  banner: {
    js: [
      "import { createRequire as __createRequire } from 'node:module';",
      'const require = __createRequire(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;',
    ].join(''),
  },
})
