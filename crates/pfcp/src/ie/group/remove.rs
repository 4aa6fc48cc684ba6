//! Removals from a session, and queries.

use super::group;

group! {
    /// The packet detection rule to remove.
    RemovePdr RemovePdrView = REMOVE_PDR "7.5.4.6-1" {
        pdr_id: PdrId, M one [ALL];
    }
}

group! {
    /// The forwarding action rule to remove.
    RemoveFar RemoveFarView = REMOVE_FAR "7.5.4.7-1" {
        far_id: FarId, M one [ALL];
    }
}

group! {
    /// The usage reporting rule to remove.
    RemoveUrr RemoveUrrView = REMOVE_URR "7.5.4.8-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
    }
}

group! {
    /// The QoS enforcement rule to remove.
    RemoveQer RemoveQerView = REMOVE_QER "7.5.4.9-1" {
        qer_id: QerId, M one [SXB SXC N4 N4MB];
    }
}

group! {
    /// The usage reporting rule to report immediately.
    QueryUrr QueryUrrView = QUERY_URR "7.5.4.10-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
    }
}

group! {
    /// The buffering action rule to remove.
    RemoveBar RemoveBarView = REMOVE_BAR "7.5.4.12-1" {
        bar_id: BarId, M one [SXA N4];
    }
}

group! {
    /// The traffic endpoint to remove.
    RemoveTrafficEndpoint RemoveTrafficEndpointView = REMOVE_TRAFFIC_ENDPOINT "7.5.4.14-1" {
        traffic_endpoint_id: TrafficEndpointId, M one [ALL];
    }
}

group! {
    /// The multi-access rule to remove.
    RemoveMar RemoveMarView = REMOVE_MAR "7.5.4.15-1" {
        mar_id: MarId, M one [N4];
    }
}

group! {
    /// The session reporting rule to remove.
    RemoveSrr RemoveSrrView = REMOVE_SRR "7.5.4.19-1" {
        srr_id: SrrId, M one [N4];
    }
}
