/** How programs say that the system refused them a socket, or that they found no host. */
const REFUSED =
  /\bE(?:PERM|NETUNREACH|NOTFOUND|AI_AGAIN)\b|operation not permitted|network is unreachable|could not resolve host|name resolution/i

/**
 * What to say of a command that failed without the network: a sentence where its output reads as if it had wanted it.
 * Without it not even a port on this machine can be opened, which nobody expects (docs/codex.md).
 */
export function wantOfNetwork(output: string): string | null {
  return REFUSED.test(output)
    ? 'It ran without the network, where not even a port on this machine can be opened; if that is why it failed, give it network = true, and the rounds --network.'
    : null
}
