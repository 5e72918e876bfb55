import { packageRoot } from '../../src/base/package.ts'
import { type CodexBinary, findCodex } from '../../src/engines/codex/find-codex.ts'

/** The codex that codemachine is developed with, wherever the checkout lies and whatever is on PATH. */
export async function findRealCodex(): Promise<CodexBinary> {
  const { platform, arch } = process
  const where = { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] }
  const copies = { folder: '/nowhere', makes: false }
  return await findCodex({ flag: null, env: { PATH: '' }, platform, arch, packageRoot, where, copies })
}
