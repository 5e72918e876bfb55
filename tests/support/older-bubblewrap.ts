import { globSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { packageRoot } from '../../src/base/package.ts'
import type { TestPlace } from './place.ts'

/**
 * Makes codex find a bubblewrap below 0.9 first on the PATH, like that of Debian 12: it has no option `--argv0`. `env` is
 * the environment for it, with a temporary folder that holds no other folder of the place.
 */
export async function withOlderBubblewrap(place: TestPlace) {
  const [codexs = ''] = globSync('node_modules/@openai/codex-linux-*/vendor/*/codex-resources/bwrap', {
    cwd: packageRoot,
  })
  const own = `'${join(packageRoot, codexs)}'`
  // Not below /tmp: codemachine and codex look for no program where agents can write.
  const folder = await mkdtemp('/var/tmp/codemachine-bin-')
  await writeFile(
    join(folder, 'bwrap'),
    `#!/bin/sh
case " $* " in *" --argv0 "*) echo "bwrap: Unknown option --argv0" >&2; exit 1;; esac
[ "$1" = --help ] && { ${own} --help | grep -v argv0; exit; }
exec ${own} "$@"
`,
    { mode: 0o755 },
  )
  const temporary = join(place.root, 'temporary')
  await mkdir(temporary)
  return {
    env: { TMPDIR: temporary, PATH: `${folder}${delimiter}${place.env.PATH}` },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
