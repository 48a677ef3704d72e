#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# two_hosts.sh RANKS_PER_HOST PROGRAM...: to be started by mpirun; gives ranks a host name each group of RANKS_PER_HOST, so that one machine looks like
# several. Needs the right to do so (root).
exec unshare --uts sh -c 'hostname "host$((OMPI_COMM_WORLD_RANK / $0))"; exec "$@"' "$@"
