/**
 * What one call of an agent is called: `frontend-dev-20261122T004530123`, with the time in UTC; a moment later if that
 * name is taken.
 * @param now Unix time, ms
 */
export function instanceName(agent: string, now: number, isTaken: (name: string) => boolean): string {
  const name = `${agent}-${new Date(now).toISOString().replace(/[-:.Z]/g, '')}`
  return isTaken(name) ? instanceName(agent, now + 1, isTaken) : name
}
