import { statfs } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { Finding } from './finding.ts'
import { judgeSpace } from './judge-space.ts'
import { nearestExisting } from './nearest-existing.ts'

/** The free space of the file systems that these paths lie on, or will; one finding for each file system. */
export async function checkDisk(paths: readonly string[]): Promise<Finding[]> {
  const findings = new Map<number, Finding>()
  for (const path of paths.filter(isAbsolute)) {
    const { path: existing, device } = await nearestExisting(path)
    if (findings.has(device)) continue
    const { bavail, bsize } = await statfs(existing)
    findings.set(device, judgeSpace(existing, bavail * bsize))
  }
  return [...findings.values()]
}
